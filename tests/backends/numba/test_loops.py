"""`if`, `while` and `scan` as compiled functions: values, exactness, what ends them, memory."""

from __future__ import annotations

import copy
import math
import random
import re

import numpy as np
import pytest
from backends.numba.random_control import Writer
from backends.numba.random_ints import LARGE, SMALL, IntWriter
from comparing import describe

import minigraph as mg
from minigraph.backends.numba import loops, segments


def compiled(text, **options):
    """A graph compiled with Numba, all of its loops included."""
    made = mg.compile(mg.parse(text), backend="numba", strict=True, **options)
    assert not made.program.reasons, [reason.text for reason in made.program.reasons.values()]
    assert any(segment.is_loop for segment in made.program.segments.values())
    return made


def outcome(run, arguments):
    """What a call returns, or the class of what it raises; the arguments stay as they are."""
    given = copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        try:
            found = run(*given)
        except (ArithmeticError, LookupError, AssertionError, ValueError) as error:
            return type(error)
    assert describe(given) == describe(arguments)
    return found


def check(text, *calls, **options):
    """The compiled graph gives what the interpreter gives."""
    run = compiled(text, **options)
    oracle = mg.compile(mg.parse(text), backend="interpret", passes=())
    for arguments in calls:
        expected, found = outcome(oracle, arguments), outcome(run, arguments)
        if isinstance(expected, type):
            assert found is expected, arguments
            continue
        assert describe(found) == describe(expected), (arguments, found, expected)
    return run


def while_loop(carried, body, test, operands=""):
    """The text of a graph with one loop.

    Args:
        carried: the parameters that it carries, `%n: int, %x: f64[4]`, which it returns.
        body: the lines of a turn.
        test: the lines that say whether there is one more.
        operands: the parameters that are the same at each turn.
    """
    head = f"({', '.join(filter(None, [carried, operands]))})"
    names, kinds = zip(*re.findall(r"(%\w+): (\w+(?:\[[^\]]*\])?)", carried), strict=True)
    ends = [f"{name}_end" for name in names]
    returned, values = ", ".join(ends), ", ".join(re.findall(r"%\w+", head))
    return f"""graph f{head} {{
      {returned} = while {values} {{
        test=graph test{head} {{
          {test}
        }},
        body=graph body{head} {{
          {body}
        }}}} : {", ".join(kinds)}
      return {f"({returned})" if ends[1:] else returned}
    }}"""


BELOW = "%ten = const 10 : int\n %c = less %n, %ten : bool\n return %c"
NEXT = "%one = const 1 : int\n %m = add %n, %one : int"


def counted(body, carried="%x: f64[4]", operands=""):
    """A loop of ten turns: `body` makes `%y` of `%x` and of the turn `%n`."""
    lines = f"{NEXT}\n {body}\n return (%m, %y)"
    return while_loop(f"%n: int, {carried}", lines, BELOW, operands)


# ---------------------------------------------------------------------------- Python's numbers


def of_numbers(kinds, result, lines):
    """A loop of one turn that computes `%r` of `%a` and `%b`."""
    a, b = kinds
    start = {"int": "0", "float": "0.0", "bool": "False"}[result]
    head = f"%n: int, %r: {result}, %a: {a}, %b: {b}"
    return f"""graph f(%a: {a}, %b: {b}) {{
      %zero = const 0 : int
      %start = const {start} : {result}
      %n, %r = while %zero, %start, %a, %b {{
        test=graph test({head}) {{
          %one = const 1 : int
          %c = less %n, %one : bool
          return %c }},
        body=graph body({head}) {{
          %one = const 1 : int
          %m = add %n, %one : int
          {lines}
          return (%m, %s) }}}} : int, {result}
      return %r
    }}"""


INTS = (0, 1, -1, 2, -2, 3, -3, 7, 63, 64, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62))
INTS += (2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 3**50)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e16, -1e200, 1e308, math.inf, -math.inf, math.nan)
BOOLS = (True, False)
VALUES = {"int": INTS, "float": FLOATS, "bool": BOOLS}


@pytest.mark.parametrize(
    "op",
    "add subtract multiply floor_divide remainder bitwise_and bitwise_or bitwise_xor".split(),
)
def test_ints_are_exact_or_python_computes_them(op):
    text = of_numbers(("int", "int"), "int", f"%s = {op} %a, %b : int")
    check(text, *((a, b) for a in INTS for b in INTS))


@pytest.mark.parametrize("op", ["left_shift", "right_shift", "pow"])
def test_shifts_and_powers(op):
    text = of_numbers(("int", "int"), "int", f"%s = {op} %a, %b : int")
    check(text, *((a, b) for a in INTS for b in (0, 1, 2, 3, 62, 63, 64, 70)))
    if op != "pow":
        check(text, (3, -1))


@pytest.mark.parametrize("op", ["negative", "positive", "absolute", "invert"])
def test_ints_alone(op):
    check(of_numbers(("int", "int"), "int", f"%s = {op} %a : int"), *((a, 0) for a in INTS))
    check(of_numbers(("bool", "int"), "int", f"%s = {op} %a : int"), (True, 0), (False, 0))


@pytest.mark.parametrize("kinds", [("float", "float"), ("int", "float"), ("float", "bool")])
@pytest.mark.parametrize("op", "add subtract multiply divide floor_divide remainder".split())
def test_floats(op, kinds):
    text = of_numbers(kinds, "float", f"%s = {op} %a, %b : float")
    calls = [(a, b) for a in VALUES[kinds[0]] for b in VALUES[kinds[1]]]
    check(text, *[call for call in calls if abs(call[0]) < 2**63 or kinds[0] == "float"])


def test_quotients_of_ints_are_rounded_once():
    text = of_numbers(("int", "int"), "float", "%s = divide %a, %b : float")
    check(text, *((a, b) for a in INTS for b in INTS), (2**53 + 1, 3), (10**18 + 1, 10**18))


@pytest.mark.parametrize("op", "equal not_equal less less_equal greater greater_equal".split())
@pytest.mark.parametrize("kinds", [("int", "float"), ("int", "int"), ("bool", "float")])
def test_comparisons_are_exact(op, kinds):
    text = of_numbers(kinds, "bool", f"%s = {op} %a, %b : bool")
    edges = [(2**53 + 1, float(2**53)), (-(2**53) - 1, -float(2**53)), (2**62, float(2**62))]
    calls = [(a, b) for a in VALUES[kinds[0]] for b in VALUES[kinds[1]]]
    check(text, *calls, *(edges if kinds == ("int", "float") else []))


def test_powers_of_floats_are_those_of_python():
    rng = np.random.default_rng(0)
    bases = [*FLOATS, *(rng.uniform(-1e3, 1e3, 40) * 10.0 ** rng.integers(-60, 60, 40)).tolist()]
    square = of_numbers(
        ("float", "float"), "float", "%two = const 2 : int\n %s = pow %a, %two : float"
    )
    check(square, *((base, 0.0) for base in bases))
    power = of_numbers(("float", "float"), "float", "%s = pow %a, %b : float")
    positive = [abs(base) for base in bases]
    check(power, *((x, y) for x in positive for y in (0.5, -0.5, 2.0, 3.0, -1.0, 0.1, 300.0)))
    check(power, (-8.0, 3.0), (-math.inf, 0.5), (0.0, -1.0), (math.nan, 0.0))


@pytest.mark.parametrize("name", "sqrt sin exp log tanh asin cosh log1p atan expm1".split())
def test_functions_of_math_give_the_bits_of_python_or_its_errors(name):
    text = of_numbers(("float", "int"), "float", f"%s = math_{name} %a : float")
    check(text, *((x, 0) for x in (*FLOATS, 0.25, 1000.0, -0.75, 1.5)))


@pytest.mark.parametrize("op", ["to_int", "math_floor", "math_ceil", "math_trunc", "round_number"])
def test_floats_become_ints(op):
    text = of_numbers(("float", "int"), "int", f"%s = {op} %a : int")
    check(text, *((x, 0) for x in (*FLOATS, 2.5, 3.5, -0.5, 2.0**62, 2.0**63, -(2.0**63))))


def test_choices_roots_and_divisors():
    choice = of_numbers(
        ("bool", "int"), "int", "%two = const 2 : int\n %s = select %a, %b, %two : int"
    )
    check(choice, (True, 5), (False, 5))
    root = of_numbers(("int", "int"), "int", "%s = math_isqrt %a : int")
    check(root, *((n, 0) for n in (0, 1, 2, 3, 4, 2**52 - 1, 10**18, 10**18 - 1, 2**61, -1, 2**63)))
    divisor = of_numbers(("int", "int"), "int", "%s = math_gcd %a, %b : int")
    check(divisor, *((a, b) for a in INTS for b in INTS))


def test_both_results_of_divmod():
    head = "%n: int, %q: int, %r: int"
    text = while_loop(
        head,
        "%seven = const -7 : int\n %d, %e = divmod %q, %seven : int, int\n"
        f"{NEXT}\n return (%m, %d, %e)",
        "%two = const 2 : int\n %c = less %n, %two : bool\n return %c",
    )
    check(text, (0, 100, 0), (1, -100, 0), (5, 3, 3))


# ---------------------------------------------------------------------------- loops of numbers

COLLATZ = while_loop(
    "%n: int, %count: int",
    """%one = const 1 : int
    %two = const 2 : int
    %zero = const 0 : int
    %r = remainder %n, %two : int
    %even = equal %r, %zero : bool
    %m = if %even, %n {
      then=graph then(%n: int) {
        %two = const 2 : int
        %h = floor_divide %n, %two : int
        return %h },
      otherwise=graph otherwise(%n: int) {
        %three = const 3 : int
        %one = const 1 : int
        %t = multiply %n, %three : int
        %u = add %t, %one : int
        return %u }} : int
    %more = add %count, %one : int
    return (%m, %more)""",
    "%one = const 1 : int\n %c = not_equal %n, %one : bool\n return %c",
)


def test_a_loop_that_leaves_64_bits_gives_the_large_numbers():
    run = check(COLLATZ, (27, 0), (1, 0), (1, 5), (2**70, 0), (3**39, 0), (3**50 + 2, 0))
    assert run(2**200, 0) == (1, 200)
    text = run.source("numba")
    assert "multiply_ints" in text and "if even:" not in text  # both sides, without a jump


def test_a_counter_needs_no_check_and_may_begin_anywhere():
    text = while_loop(
        "%n: int, %k: int",
        f"{NEXT}\n %two = const 2 : int\n %j = subtract %k, %two : int\n return (%m, %j)",
        BELOW,
    )
    run = check(text, (0, 0), (3, 2**60), (3, -(2**63)), (3, -(2**63) + 100), (10, 7), (11, 2**80))
    assert "add_ints" not in run.source("numba")


def test_what_a_counter_adds_may_grow_itself():
    text = while_loop(
        "%n: int, %a: int, %b: int, %c: int",
        f"""{NEXT}
        %three = const 3 : int
        %most = const 1152921504606846976 : int
        %c2 = multiply %a, %three : int
        %a2 = add %a, %b : int
        %b2 = add %b, %b : int
        %b3 = minimum %b2, %most : int
        return (%m, %a2, %b3, %c2)""",
        "%end = const 64 : int\n %go = less %n, %end : bool\n return %go",
    )
    body = text.removeprefix("graph f(%n: int, %a: int, %b: int, %c: int) {")
    numbers = "%n = const 0 : int\n %a = const 0 : int\n %b = const 1 : int\n %c = const 0 : int"
    run = check(f"graph f() {{ {numbers} {body}", ())
    assert run()[-1] == 13835058055282163709


def test_a_counter_may_begin_where_others_end():
    text = f"""graph f(%end: int) {{
      %n = const 0 : int
      %i = const {2**61} : int
      %s = const 0 : int
      %n_end, %i_end, %s_end = while %n, %i, %s, %end {{
        test=graph test(%n: int, %i: int, %s: int, %end: int) {{
          %c = less %n, %end : bool
          return %c }},
        body=graph body(%n: int, %i: int, %s: int, %end: int) {{
          {NEXT}
          %four = const -4 : int
          %t = multiply %i, %four : int
          %j = add %i, %one : int
          return (%m, %j, %t) }}}} : int, int, int
      return (%i_end, %s_end)
    }}"""
    run = check(text, (0,), (1,), (2,), (3,))
    assert run(3) == (2**61 + 3, -4 * (2**61 + 2))


def test_ten_million_turns_compile_as_fast_as_ten():
    text = while_loop("%n: int, %end: int, %s: float", f"""{NEXT}
        %x = add %s, %n : float
        return (%m, %end, %x)""", "%c = less %n, %end : bool\n return %c")  # fmt: skip
    run = compiled(text)
    assert run(0, 10**7, 0.0) == (10**7, 10**7, float(10**7 * (10**7 - 1) // 2))


def test_a_limit():
    check(COLLATZ.replace("test=graph", "limit=5, test=graph", 1), (27, 0), (4, 0), (1, 0))


def test_loops_six_deep():
    body = "%one = const 1 : int\n %r = add %s, %one : int"
    for _ in range(6):
        body = f"""%zero = const 0 : int
        %k, %r = while %zero, %s {{
          test=graph test(%n: int, %s: int) {{
            %three = const 3 : int
            %c = less %n, %three : bool
            return %c }},
          body=graph body(%n: int, %s: int) {{
            {body}
            %u = const 1 : int
            %m = add %n, %u : int
            return (%m, %r) }}}} : int, int"""
    run = check(f"graph f(%s: int) {{ {body}\n return %r }}", (0,), (5,), (2**62,), (2**64,))
    assert run(1) == 1 + 3**6


def test_swapped_values():
    text = while_loop(
        "%n: int, %a: int, %b: int, %x: f64[3], %y: f64[3]",
        f"{NEXT}\n %s = add %a, %b : int\n %z = add %x, %y : f64[3]\n return (%m, %b, %s, %y, %z)",
        BELOW,
    )
    x, y = np.arange(3.0), np.ones(3)
    check(text, (0, 0, 1, x, y), (9, 1, 2, x, y), (10, 1, 2, x, y))
    text = while_loop(
        "%n: int, %a: int, %b: int, %x: f64[3], %y: f64[3]",
        f"{NEXT}\n return (%m, %b, %a, %y, %x)",
        BELOW,
    )
    check(text, (0, 0, 1, x, y), (9, 1, 2, x, y), (10, 1, 2, x, y))


# ---------------------------------------------------------------------------- failures


def test_errors_are_those_of_python_at_the_users_line():
    def function(n, x):
        total = 0
        while n > 0:
            n = n - 1
            total = total + 100 // (n - 3)  # fails at n = 3
        return total + x

    jitted = mg.script(function, backend="numba", strict=True)
    assert jitted(3, 1) == function(3, 1)
    with pytest.raises(ZeroDivisionError) as error:
        jitted(10, 1)
    note = "\n".join(error.value.__notes__)
    assert "fails at n = 3" in note and __file__ in note
    assert error.value.__context__ is None


@pytest.mark.parametrize("at", [3, -5, 2**70])
def test_positions_out_of_range(at):
    text = counted(
        "%e = gather %x, %k {index=[%]} : f64[]\n %y = add %x, %e : f64[4]", operands="%k: int"
    )
    check(text, (0, np.arange(4.0), at), (10, np.arange(4.0), at))


def test_a_failed_check():
    text = while_loop(
        "%n: int",
        f"{NEXT}\n %five = const 5 : int\n %ok = not_equal %n, %five : bool\n"
        "check %ok {error='ValueError', message='five'}\n return %m",
        BELOW,
    )
    run = check(text, (0,), (6,), (5,), (12,))
    with pytest.raises(ValueError, match="five") as error:
        run(0)
    assert error.value.args == ("five",)


def test_ints_that_do_not_fit_a_dtype():
    text = counted("%y = add %x, %k : i8[2]", carried="%x: i8[2]", operands="%k: int")
    x = np.array([1, 100], np.int8)
    check(text, (0, x, 3), (0, x, 300), (0, x, -129), (10, x, 300), (0, x, 2**70))
    stored = counted(
        "%zero = const 0 : int\n %y = update %x, %k, %zero {index=[%]} : u8[2]",
        carried="%x: u8[2]",
        operands="%k: int",
    )
    x = np.array([1, 100], np.uint8)
    check(stored, (0, x, 3), (0, x, 300), (0, x, -1), (0, x, 2**70))


# ---------------------------------------------------------------------------- arrays

X = np.array([0.5, -1.0, 2.0, 3.5])


def test_elements_and_stores_are_in_place():
    text = counted(
        """%three = const 3 : int
        %i = remainder %n, %three : int
        %j = add %i, %one : int
        %a = gather %x, %i {index=[%]} : f64[]
        %b = gather %x, %j {index=[%]} : f64[]
        %s = add %a, %b : f64[]
        %y = update %x, %s, %i {index=[%]} : f64[4]"""
    )
    run = check(text, (0, X), (10, X), (2, X[::-1]))
    assert "copy_elements" not in run.source("numba").partition("while True")[2]


def test_an_old_value_that_is_needed_is_kept():
    text = while_loop(
        "%n: int, %x: f64[4], %y: f64[4]",
        f"""{NEXT}
        %three = const 3 : int
        %i = remainder %n, %three : int
        %old = gather %x, %i {{index=[%]}} : f64[]
        %two = const 2.0 : float
        %z = update %x, %two, %i {{index=[%]}} : f64[4]
        %w = subtract %x, %z : f64[4]
        %s = add %w, %old : f64[4]
        return (%m, %z, %s)""",
        BELOW,
    )
    check(text, (0, X, X), (9, X, X), (10, X, X))


def test_rows_are_views_as_long_as_nothing_is_stored():
    text = while_loop(
        "%n: int, %t: f64[3,4]",
        f"""{NEXT}
        %two = const 2 : int
        %i = remainder %n, %two : int
        %j = add %i, %one : int
        %row = gather %t, %i {{index=[%]}} : f64[4]
        %u = update %t, %row, %j {{index=[%]}} : f64[3,4]
        %v = update %u, %row {{index=[0]}} : f64[3,4]
        %last = slice %u {{index=[-1]}} : f64[4]
        %w = add %v, %last : f64[3,4]
        return (%m, %w)""",
        BELOW,
    )
    t = np.arange(12.0).reshape(3, 4)
    check(text, (0, t), (8, t), (8, np.asfortranarray(t)), (10, t))


def test_parts_columns_and_steps():
    text = while_loop(
        "%n: int, %t: f32[4,5]",
        f"""{NEXT}
        %four = const 4 : int
        %j = remainder %n, %four : int
        %column = gather %t, %j {{index=[:, %]}} : f32[4]
        %odd = slice %t {{index=[::2, 1:5:2]}} : f32[2,2]
        %a = update %t, %column, %j {{index=[:, %]}} : f32[4,5]
        %b = update %a, %odd {{index=[1::2, ::-3]}} : f32[4,5]
        %c = update %b, %column, %j {{index=[%, :4]}} : f32[4,5]
        %half = const 0.5 : float
        %d = update %c, %half {{index=[0]}} : f32[4,5]
        return (%m, %d)""",
        BELOW,
    )
    check(text, (0, np.arange(20, dtype=np.float32).reshape(4, 5)))


def test_stores_that_overlap_what_they_read():
    text = counted("%a = slice %x {index=[:3]} : f64[3]\n %y = update %x, %a {index=[1:]} : f64[4]")
    check(text, (7, X), (10, X))


def test_stores_convert():
    text = while_loop(
        "%n: int, %a: i16[3], %b: f32[3], %flags: bool[3], %d: u8[3]",
        f"""{NEXT}
        %x = const 2.75 : float
        %two = const 2 : int
        %i = remainder %n, %two : int
        %a1 = update %a, %x, %i {{index=[%]}} : i16[3]
        %b1 = update %b, %n, %i {{index=[%]}} : f32[3]
        %c1 = update %flags, %n, %i {{index=[%]}} : bool[3]
        %e = gather %a1, %i {{index=[%]}} : i16[]
        %d1 = update %d, %e, %i {{index=[%]}} : u8[3]
        %b2 = update %b1, %a1 {{index=[...]}} : f32[3]
        return (%m, %a1, %b2, %c1, %d1)""",
        BELOW,
    )
    kinds = [np.zeros(3, dtype) for dtype in (np.int16, np.float32, bool, np.uint8)]
    check(text, (5, *kinds), (10, *kinds))


def test_elements_that_add_up():
    text = counted(
        """%three = const 3 : int
        %i = remainder %n, %three : int
        %a = scatter_add %x, %half, %i {index=[%]} : f64[4]
        %y = scatter_add %a, %row {index=[1:]} : f64[4]""",
        operands="%half: f64[], %row: f64[3]",
    )
    check(text, (0, X, np.float64(0.5), np.arange(3.0)))


def test_new_arrays_and_joined_ones():
    text = counted(
        """%z = zeros {shape=(4,)} : f64[4]
        %o = full %n {shape=(4,), dtype=f64} : f64[4]
        %a = add %z, %o : f64[4]
        %b = add %a, %x : f64[4]
        %first = slice %b {index=[:1]} : f64[1]
        %last = slice %x {index=[1:]} : f64[3]
        %y = concatenate %last, %first : f64[4]"""
    )
    check(text, (0, X), (10, X))
    text = counted(
        """%d = dot %x, %x : f64[]
        %half = slice %x {index=[:2]} : f64[2]
        %other = slice %x {index=[2:]} : f64[2]
        %s = stack %half, %other : f64[2,2]
        %t = stack %half, %other {axis=1} : f64[2,2]
        %u = concatenate %s, %t {axis=1} : f64[2,4]
        %row = slice %u {index=[1]} : f64[4]
        %y = divide %row, %d : f64[4]"""
    )
    check(text, (0, X), (10, X))


def test_branches_with_arrays():
    text = counted(
        """%two = const 2 : int
        %r = remainder %n, %two : int
        %zero = const 0 : int
        %even = equal %r, %zero : bool
        %y, %k = if %even, %x, %n {
          then=graph then(%x: f64[4], %n: int) {
            %half = const 0.5 : float
            %z = multiply %x, %half : f64[4]
            return (%z, %n) },
          otherwise=graph otherwise(%x: f64[4], %n: int) {
            %one = const 1 : int
            %two = const 2 : int
            %i = remainder %n, %two : int
            %z = update %x, %one, %i {index=[%]} : f64[4]
            return (%z, %one) }} : f64[4], int"""
    )
    check(text, (0, X), (9, X), (10, X))


def test_a_branch_alone():
    text = """graph f(%c: bool, %x: f64[4], %n: int) {
      %y, %m = if %c, %x, %n {
        then=graph then(%x: f64[4], %n: int) {
          %z = add %x, %n : f64[4]
          %one = const 1 : int
          %m = add %n, %one : int
          return (%z, %m) },
        otherwise=graph otherwise(%x: f64[4], %n: int) { return (%x, %n) }} : f64[4], int
      return (%y, %m)
    }"""
    run = check(text, (True, X, 3), (False, X, 3), (True, X, 2**63 - 1), (False, X, 2**80))
    kept, _ = run(False, X, 1)
    assert not np.shares_memory(kept, X)


def test_scan():
    text = """graph f(%h: f32[3], %s: f64[], %xs: f32[n,3], %w: f32[3,3]) {
      %h1, %s1, %ys, %ss = scan %h, %s, %xs, %w {carried=2, scanned=1, length=<n>, REVERSE
        body=graph body(%h: f32[3], %s: f64[], %x: f32[3], %w: f32[3,3]) {
          %p = matmul %h, %w : f32[3]
          %q = add %p, %x : f32[3]
          %t = tanh %q : f32[3]
          %m = sum %t {axis=(0,)} : f32[]
          %u = add %s, %m : f64[]
          return (%t, %u, %q, %m) }} : f32[3], f64[], f32[n,3], f32[n]
      return (%h1, %s1, %ys, %ss)
    }"""
    rng = np.random.default_rng(1)
    s, h, w = (
        np.float64(0.5),
        rng.standard_normal((3,), np.float32),
        rng.standard_normal((3, 3), np.float32),
    )
    for reverse in ("", "reverse=True,"):
        run = compiled(text.replace("REVERSE", reverse))
        oracle = mg.compile(mg.parse(text.replace("REVERSE", reverse)), backend="interpret")
        for length in (1, 7):
            xs = rng.standard_normal((3, length), np.float32).T
            for a, b in zip(run(h, s, xs, w), oracle(h, s, xs, w), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
                assert a.dtype == b.dtype and a.shape == b.shape


def test_a_transposed_matrix_is_copied_once_for_many_rows():
    text = """graph f(%h: f32[ROWS,16], %xs: f32[LENGTH,ROWS,16], %w: f32[16,16]) {
      %t = transpose %w {axes=(1, 0)} : f32[16,16]
      %h1, %ys = scan %h, %xs, %t {carried=1, scanned=1, length=LENGTH,
        body=graph body(%h: f32[ROWS,16], %x: f32[ROWS,16], %t: f32[16,16]) {
          %p = matmul %h, %t : f32[ROWS,16]
          %q = subtract %x, %p : f32[ROWS,16]
          %r = tanh %q : f32[ROWS,16]
          return (%r, %p) }} : f32[ROWS,16], f32[LENGTH,ROWS,16]
      return (%h1, %ys)
    }"""
    rng = np.random.default_rng(1)
    for rows, length, copied in ((9, 20, True), (9, 2, False), (3, 30, False)):
        own = text.replace("ROWS", str(rows)).replace("LENGTH", str(length))
        run, oracle = compiled(own), mg.compile(mg.parse(own), backend="interpret")
        h, w = rng.standard_normal((rows, 16), np.float32), 0.1 * rng.standard_normal((16, 16))
        xs = rng.standard_normal((length, rows, 16), np.float32)
        arguments = h, xs, w.astype(np.float32)
        for a, b in zip(run(*arguments), oracle(*arguments), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        source = run.source("numba")
        assert ("product_cc(" in source) == copied and ("product_cf(" in source) != copied


def test_results_are_fresh_arrays():
    text = counted("%y = identity %x : f64[4]")
    run = compiled(text)
    _, first = run(10, X)
    _, second = run(0, X)
    assert not np.shares_memory(first, X) and not np.shares_memory(first, second)
    first[:] = 7
    assert np.array_equal(run(0, X)[1], X)


def test_constants_inside():
    text = counted("%c = const [1.0, 2.0, 3.0, 4.0] : f64[4]\n %y = add %x, %c : f64[4]")
    check(text, (0, X), (10, X))


def test_numpy_scalars_wrap_around():
    text = while_loop(
        "%n: int, %a: i32[], %b: u8[], %large: i64[], %d: f32[], %e: bool[]",
        f"""{NEXT}
        %a1 = multiply %a, %a : i32[]
        %b1 = subtract %b, %n : u8[]
        %c1 = add %large, %large : i64[]
        %two = const 2.0 : float
        %d1 = multiply %d, %two : f32[]
        %e1 = logical_not %e : bool[]
        return (%m, %a1, %b1, %c1, %d1, %e1)""",
        BELOW,
    )
    kinds = (np.int32(70000), np.uint8(3), np.int64(2**62), np.float32(0.1), np.bool_(True))
    check(text, (0, *kinds), (9, *kinds), (10, *kinds))


# ---------------------------------------------------------------------------- rows in threads

CELL = """graph f(%h: f32[6,8], %c: f32[6,8], %xs: f32[5,6,16], %w: f32[16,8], %b: f32[16]) {
  %h1, %c1, %ys = scan %h, %c, %xs, %w, %b {carried=2, scanned=1, length=5,
    body=graph body(%h: f32[6,8], %c: f32[6,8], %x: f32[6,16], %w: f32[16,8], %b: f32[16]) {
      %wt = transpose %w {axes=(1, 0)} : f32[8,16]
      %p = matmul %h, %wt : f32[6,16]
      %q = add %p, %x : f32[6,16]
      %r = add %q, %b : f32[6,16]
      %s = slice %r {index=[:, :8]} : f32[6,8]
      %t = slice %r {index=[..., 8:]} : f32[6,8]
      %u = tanh %s : f32[6,8]
      %v = multiply %u, %c : f32[6,8]
      %d = add %v, %t : f32[6,8]
      %e = max %d {axis=(1,), keepdims=True} : f32[6,1]
      %y = subtract %d, %e : f32[6,8]
      return (%y, %d, %y) }} : f32[6,8], f32[6,8], f32[5,6,8]
  return (%h1, %c1, %ys)
}"""


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(
    ("row", "split"),
    [
        ("%d = add %v, %t : f32[6,8]", True),
        ("%o = sum %v {axis=(0,)} : f32[8]\n %d = add %t, %o : f32[6,8]", False),
        ("%o = slice %v {index=[::-1]} : f32[6,8]\n %d = add %t, %o : f32[6,8]", False),
        ("%o = slice %v {index=[2]} : f32[8]\n %d = add %t, %o : f32[6,8]", False),
    ],
)
def test_rows_that_stay_apart_are_shared_among_threads(monkeypatch, threads, row, split):
    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    text = CELL.replace("%d = add %v, %t : f32[6,8]", row)
    run = compiled(text, num_threads=threads)
    assert ("shared_" in run.source("numba")) == (split and threads > 1)
    same_scan(run, text, (6, 8), (6, 8), (5, 6, 16), (16, 8), (16,))


def same_scan(run, text, *shapes):
    """What is compiled gives what the interpreter does."""
    rng = np.random.default_rng(3)
    given = [rng.standard_normal(shape, np.float32) for shape in shapes]
    oracle = mg.compile(mg.parse(text), backend="interpret")
    for a, b in zip(run(*given), oracle(*given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_thread_that_has_rows_of_all_steps_shares_no_kernel_of_one(monkeypatch):
    for module in (loops, segments):
        monkeypatch.setattr(module, "PARALLEL_WORK", 0)
    run = compiled(CELL, num_threads=2)
    assert run.source("numba").count("if t > 1:") <= 2  # the rows, and a copy of the weights
    same_scan(run, CELL, (6, 8), (6, 8), (5, 6, 16), (16, 8), (16,))


@pytest.mark.parametrize("threads", [1, 2])
def test_transposed_weights_that_are_others_at_each_step(monkeypatch, threads):
    monkeypatch.setattr(loops, "PARALLEL_WORK", 0)
    text = """graph f(%h: f32[64,8], %ws: f32[3,8,8]) {
  %h1 = scan %h, %ws {carried=1, scanned=1, length=3,
    body=graph body(%h: f32[64,8], %w: f32[8,8]) {
      %wt = transpose %w {axes=(1, 0)} : f32[8,8]
      %p = matmul %h, %wt : f32[64,8]
      %u = tanh %p : f32[64,8]
      return %u }} : f32[64,8]
  return (%h1, %h1)
}"""
    same_scan(compiled(text, num_threads=threads), text, (64, 8), (3, 8, 8))


# ---------------------------------------------------------------------------- in Python


def test_what_prints_runs_in_python_and_what_is_inside_is_compiled(capsys):
    inner = counted("%y = add %x, %n : f64[4]").partition("{")[2].rpartition("return")[0]
    inner = inner.replace("while %n, %x", "while %zero, %x")
    text = while_loop(
        "%n: int, %x: f64[4]",
        f"{NEXT}\n %zero = const 0 : int\n {inner}\n print %n_end {{parts=('turns', %)}}\n"
        "%t = multiply %x_end, %x : f64[4]\n return (%m, %t)",
        "%two = const 2 : int\n %c = less %n, %two : bool\n return %c",
    )
    run = mg.compile(mg.parse(text), backend="numba", strict=True)
    oracle = mg.compile(mg.parse(text), backend="interpret")
    (expected, told), (found, again) = [
        (each(0, X), capsys.readouterr().out) for each in (oracle, run)
    ]
    assert told == again == "turns 10\nturns 10\n"
    assert np.array_equal(found[1], expected[1])
    names = [segment.nodes[0].op.name for segment in run.program.segments.values()]
    assert names == ["while", "kernel"]
    assert "in Python: %n_end, %x_end = while %n, %x, for it prints" in run.explain()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("%y = sort %x {axis=0} : f64[4]", "`sort` is not compiled"),
        ("%big = const 18446744073709551616 : int\n %b = less %n, %big : bool\n"
         "check %b\n %y = identity %x : f64[4]", "18446744073709551616 is beyond 64 bits"),
    ],
)  # fmt: skip
def test_reasons(text, why):
    run = mg.compile(mg.parse(counted(text)), backend="numba", strict=True)
    assert why in run.explain()
    oracle = mg.compile(mg.parse(counted(text)), backend="interpret")
    assert describe(run(0, X)) == describe(oracle(0, X))


# ---------------------------------------------------------------------------- random graphs


def arguments(seed):
    rng = np.random.default_rng(seed)
    return (
        int(rng.integers(-5, 6)),
        float(rng.normal()),
        bool(rng.integers(2)),
        np.float64(rng.normal()),
        np.int32(rng.integers(-9, 9)),
        rng.normal(size=4),
        rng.normal(size=(3, 4)).astype(np.float32),
        rng.integers(-5, 5, 4),
    )


def close(a, b):
    if isinstance(a, np.ndarray | np.generic):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        tolerance = 1e-5 if a.dtype == np.float32 else 1e-12
        return np.allclose(a, b, rtol=tolerance, atol=0, equal_nan=True)
    return type(a) is type(b) and (a == b or a != a)


MANY = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 60)]


@pytest.mark.parametrize("seed", [*range(8), *MANY])
def test_random_graphs(seed):
    text = Writer(seed).graph()
    run = mg.compile(mg.parse(text), backend="numba", strict=True)
    assert not run.program.reasons
    oracle = mg.compile(mg.parse(text), backend="interpret", passes=())
    for each in range(3):
        given = arguments(3 * seed + each)
        expected, found = outcome(oracle, given), outcome(run, given)
        if isinstance(expected, type):
            assert found is expected
        else:
            assert all(close(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("seed", [*range(8), *MANY])
def test_random_ints(seed):
    text = IntWriter(seed).graph()
    run = mg.compile(mg.parse(text), backend="numba", strict=True)
    oracle = mg.compile(mg.parse(text), backend="interpret", passes=())
    source = random.Random(seed)
    for _ in range(6):
        given = [source.choice([*SMALL, *LARGE, 2**63, 2**80]) for _ in range(3)]
        assert outcome(run, given) == outcome(oracle, given), given
