"""erf: -expm1(log(erfc(|x|))), the logarithm by a fitted function of |x|.

log(erfc(x)) / x is smooth, where erf itself would need three ranges; and how exactly it must be
known falls with erfc(x), so few terms do. No published method is followed; the fits are minimax
(Remez) under that weight.
"""

from __future__ import annotations

from .exponential import coarse_expm1
from .lanes import Float, polynomial

# From here on, erf(x) rounds to 1.
HIGHEST = {32: 3.93, 64: 5.93}

# log(erfc(x)) / x: relative error of erf 2**-28.
SINGLE_POLYNOMIAL = (
    -1.1283791715971865,
    -0.636619381797227,
    -0.10277783645983095,
    0.01915310469268126,
    0.00016028880944643622,
    -0.0016668935165319466,
    0.0006327516718570721,
    -0.00011761467710310166,
    9.253041219240578e-06,
)
# The same, relative error of erf 2**-59.
DOUBLE_NUMERATOR = (
    -1.1283791670955126,
    -2.5213402232213897,
    -2.6666056644927343,
    -1.711450456359077,
    -0.7188950618268092,
    -0.19940268358799162,
    -0.034880635292397474,
    -0.0033595614931384464,
    -0.00011812113272603308,
)
DOUBLE_DENOMINATOR = (
    1.0,
    1.6702900104981058,
    1.3297776657663827,
    0.6313091526432592,
    0.18831055646641645,
    0.0343226526512564,
    0.003357119311350964,
    0.00011814223179545427,
)


def erf(x: Float) -> Float:
    """The error function."""
    y = abs(x).at_most(HIGHEST[x.format.width])
    if x.format.width == 32:
        slope = polynomial(y, SINGLE_POLYNOMIAL)
    else:
        slope = polynomial(y, DOUBLE_NUMERATOR) / polynomial(y, DOUBLE_DENOMINATOR)
    return coarse_expm1(y * slope).with_sign_of(x)
