"""Attention, positions, and the blocks that transformers are made of."""

from __future__ import annotations

from typing import Any

from minigraph.errors import OptionError, ShapeError
from minigraph.mode import here

from . import functional as F
from .basic import Dense, Dropout
from .functional import check_rate
from .hybrid import HybridBlock
from .norm import LayerNorm
from .parameter import Constant, Parameter


class MultiHeadAttention(HybridBlock):
    """Several attentions side by side, each on its own part of the features.

    Args:
        units: features of queries, keys, values and the result.
        num_heads: a divisor of the units.
        dropout: the rate at which weights of the attention are dropped while training.
        use_bias: of the four products.
        causal: a query looks at keys of its own position and before only.
        weight_initializer: of the four products.
        bias_initializer: of their biases.
        dtype: of the parameters.

    Raises:
        OptionError: the units do not fall into that many heads.
    """

    def __init__(
        self,
        units: int,
        num_heads: int,
        *,
        dropout: float = 0.0,
        use_bias: bool = True,
        causal: bool = False,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        if num_heads < 1 or units % num_heads:
            raise OptionError(
                f"{units} units do not fall into {num_heads} equal heads",
                instead="num_heads= a divisor of units=",
            )
        check_rate(dropout)
        self.num_heads = num_heads
        self.dropout = dropout
        self.causal = causal

        def product() -> Dense:
            return Dense(
                units,
                use_bias=use_bias,
                flatten=False,
                dtype=dtype,
                weight_initializer=weight_initializer,
                bias_initializer=bias_initializer,
            )

        self.query = product()
        self.key = product()
        self.value = product()
        self.output = product()

    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        mask: Any = None,
        valid_length: Any = None,
    ) -> Any:
        """Look up values at the keys that fit each query.

        Args:
            query: (batch, queries, features).
            key: (batch, keys, features); None: the query.
            value: (batch, keys, features); None: the key.
            mask: True where a query may look at a key, or numbers that are added to the scores:
                (queries, keys), (batch, queries, keys), or with an axis of heads after the batch.
            valid_length: (batch,); no query looks at keys from there on.
        """
        key = query if key is None else key
        value = key if value is None else value
        if mask is not None and mask.ndim == 3:
            mask = mask[:, None]
        found = F.scaled_dot_product_attention(
            F.split_heads(self.query(query), self.num_heads),
            F.split_heads(self.key(key), self.num_heads),
            F.split_heads(self.value(value), self.num_heads),
            mask,
            valid_length,
            causal=self.causal,
            dropout_rate=self.dropout,
        )
        return self.output(F.merge_heads(found))

    def extra_repr(self) -> str:
        return f"heads={self.num_heads}" + (", causal" if self.causal else "")


class PositionalEncoding(HybridBlock):
    """Adds to each vector of a sequence one that tells its position.

    Args:
        units: features of the vectors.
        max_length: of sequences.
        dropout: the rate at which features are dropped while training, after adding.
        learned: the added vectors are learned; else they are sines and cosines.
        weight_initializer: of learned vectors.
        dtype: of the added vectors.
    """

    def __init__(
        self,
        units: int,
        max_length: int = 1000,
        *,
        dropout: float = 0.0,
        learned: bool = False,
        weight_initializer: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.max_length = max_length
        if learned:
            self.weight = Parameter("weight", (max_length, units), dtype, weight_initializer)
        else:
            self.weight = Constant(F.sinusoids(max_length, units).astype(dtype), "weight")
        self.dropout = Dropout(dropout)

    def forward(self, x: Any) -> Any:
        """Shape of x: (batch, length, units)."""
        length = x.shape[1]
        if type(length) is int and length > self.max_length:
            raise ShapeError(
                f"a sequence of {length} vectors, and there are {self.max_length} positions",
                where=here(),
                instead=f"PositionalEncoding(..., max_length={length})",
            )
        return self.dropout(x + self.weight.data()[:length])

    def extra_repr(self) -> str:
        return f"max_length={self.max_length}"


class FeedForward(HybridBlock):
    """Two dense layers at each position of a sequence.

    Args:
        units: features that come out.
        hidden_units: features in between.
        activation: in between.
        dropout: the rate at which features in between are dropped while training.
        use_bias: of both layers.
        weight_initializer: of both layers.
        dtype: of the parameters.
    """

    def __init__(
        self,
        units: int,
        hidden_units: int,
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        use_bias: bool = True,
        weight_initializer: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {
            "use_bias": use_bias,
            "flatten": False,
            "dtype": dtype,
            "weight_initializer": weight_initializer,
        }
        self.hidden = Dense(hidden_units, activation, **options)
        self.dropout = Dropout(dropout)
        self.output = Dense(units, **options)

    def forward(self, x: Any) -> Any:
        return self.output(self.dropout(self.hidden(x)))


class _TransformerBlock(HybridBlock):
    """What encoder and decoder share: how parts are added to what goes through."""

    units: int
    pre_norm: bool
    dropout: Dropout

    def _check(self, x: Any) -> None:
        """What goes through has the features that are added to it."""
        if type(x.shape[-1]) is int and x.shape[-1] != self.units:
            raise ShapeError(
                f"a {type(self).__name__} of {self.units} units, and the sequence has "
                f"{x.shape[-1]} features: its shape is {x.shape}",
                where=here(),
                instead=f"{type(self).__name__}({x.shape[-1]}, ...), or a Dense before it",
            )

    def _add(self, x: Any, norm: LayerNorm, part: Any) -> Any:
        """`x + part(x)`, normalised after adding, or before the part (`pre_norm`)."""
        if self.pre_norm:
            return x + self.dropout(part(norm(x)))
        return norm(x + self.dropout(part(x)))


class TransformerEncoderBlock(_TransformerBlock):
    """Self-attention, then two dense layers at each position, each added to its input.

    Args:
        units: features of the sequence.
        num_heads: of the attention, a divisor of the units.
        hidden_units: between the two dense layers; None: four times the units.
        dropout: the rate of all dropouts.
        activation: between the two dense layers.
        pre_norm: normalise what goes into each part; else each sum.
        causal: each position looks at itself and before only.
        use_bias: of all products.
        epsilon: of the normalisations.
        weight_initializer: of all products.
        dtype: of the parameters.
    """

    def __init__(
        self,
        units: int,
        num_heads: int,
        hidden_units: int | None = None,
        *,
        dropout: float = 0.0,
        activation: str = "relu",
        pre_norm: bool = False,
        causal: bool = False,
        use_bias: bool = True,
        epsilon: float = 1e-5,
        weight_initializer: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.units = units
        self.pre_norm = pre_norm
        self.attention = MultiHeadAttention(
            units,
            num_heads,
            dropout=dropout,
            use_bias=use_bias,
            causal=causal,
            weight_initializer=weight_initializer,
            dtype=dtype,
        )
        self.attention_norm = LayerNorm(epsilon=epsilon, dtype=dtype)
        self.feed_forward = FeedForward(
            units,
            hidden_units or 4 * units,
            activation=activation,
            dropout=dropout,
            use_bias=use_bias,
            weight_initializer=weight_initializer,
            dtype=dtype,
        )
        self.feed_forward_norm = LayerNorm(epsilon=epsilon, dtype=dtype)
        self.dropout = Dropout(dropout)

    def forward(self, x: Any, mask: Any = None, valid_length: Any = None) -> Any:
        """Shape of x: (batch, length, units); mask and valid_length as `MultiHeadAttention`'s."""
        self._check(x)

        def attend(x: Any) -> Any:
            return self.attention(x, None, None, mask, valid_length)

        x = self._add(x, self.attention_norm, attend)
        return self._add(x, self.feed_forward_norm, self.feed_forward)


class TransformerDecoderBlock(_TransformerBlock):
    """Causal self-attention, attention to an encoder's result, two dense layers; each is added.

    Args:
        units: features of the sequence and of the encoder's result.
        num_heads: of both attentions, a divisor of the units.
        hidden_units: between the two dense layers; None: four times the units.
        dropout: the rate of all dropouts.
        activation: between the two dense layers.
        pre_norm: normalise what goes into each part; else each sum.
        causal: each position looks at itself and before only.
        use_bias: of all products.
        epsilon: of the normalisations.
        weight_initializer: of all products.
        dtype: of the parameters.
    """

    def __init__(
        self,
        units: int,
        num_heads: int,
        hidden_units: int | None = None,
        *,
        dropout: float = 0.0,
        activation: str = "relu",
        pre_norm: bool = False,
        causal: bool = True,
        use_bias: bool = True,
        epsilon: float = 1e-5,
        weight_initializer: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.units = units
        self.pre_norm = pre_norm

        def attention(causal: bool) -> MultiHeadAttention:
            return MultiHeadAttention(
                units,
                num_heads,
                dropout=dropout,
                use_bias=use_bias,
                causal=causal,
                weight_initializer=weight_initializer,
                dtype=dtype,
            )

        self.attention = attention(causal)
        self.attention_norm = LayerNorm(epsilon=epsilon, dtype=dtype)
        self.cross_attention = attention(False)
        self.cross_attention_norm = LayerNorm(epsilon=epsilon, dtype=dtype)
        self.feed_forward = FeedForward(
            units,
            hidden_units or 4 * units,
            activation=activation,
            dropout=dropout,
            use_bias=use_bias,
            weight_initializer=weight_initializer,
            dtype=dtype,
        )
        self.feed_forward_norm = LayerNorm(epsilon=epsilon, dtype=dtype)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Any,
        memory: Any,
        mask: Any = None,
        memory_mask: Any = None,
        memory_valid_length: Any = None,
    ) -> Any:
        """Go on with a sequence, in view of another.

        Args:
            x: (batch, length, units).
            memory: the encoder's result, (batch, keys, units).
            mask: of the self-attention, as `MultiHeadAttention`'s; besides `causal`.
            memory_mask: of the attention to the memory.
            memory_valid_length: (batch,); nothing looks at the memory from there on.
        """
        self._check(x)

        def attend(x: Any) -> Any:
            return self.attention(x, None, None, mask)

        def attend_across(x: Any) -> Any:
            return self.cross_attention(x, memory, memory, memory_mask, memory_valid_length)

        x = self._add(x, self.attention_norm, attend)
        x = self._add(x, self.cross_attention_norm, attend_across)
        return self._add(x, self.feed_forward_norm, self.feed_forward)
