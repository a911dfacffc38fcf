"""Graphs and arrays in files: what is written is read back, and what is damaged is refused."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import minigraph as mg
from minigraph.errors import FormatError
from minigraph.formats import (
    from_tensors,
    load_tensors,
    read_archive,
    save_tensors,
    to_tensors,
    write_archive,
)
from minigraph.trace import bind, trace_call

TABLE = mg.freeze(np.linspace(0, 1, 300).reshape(3, 100))
W = np.arange(12.0, dtype=np.float32).reshape(4, 3)


def layer(x):
    return np.tanh(x @ W) @ TABLE


def traced():
    return trace_call(layer, bind(layer, (np.ones((2, 4), np.float32),), {})).graph


DTYPES = ("bool", "int8", "uint64", "float16", "float32", "float64", "complex64")


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=8),
        st.sampled_from(DTYPES).flatmap(
            lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, min_side=0))
        ),
    )
)
def test_arrays_come_back_bit_for_bit(arrays):
    arrays.pop("__metadata__", None)
    found = from_tensors(to_tensors(arrays), "memory")
    assert list(found) == sorted(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == np.ascontiguousarray(array).tobytes()
        assert found[name].flags.writeable


def test_strided_arrays_are_stored_in_c_order():
    found = from_tensors(to_tensors({"turned": W.T, "every other": W[:, ::2]}), "memory")
    assert (found["turned"] == W.T).all() and (found["every other"] == W[:, ::2]).all()


def test_a_dtype_without_a_name_is_named(tmp_path):
    with pytest.raises(FormatError, match="weights has the dtype complex128"):
        save_tensors(tmp_path / "x.safetensors", {"weights": np.ones(2, np.complex128)})
    assert list(tmp_path.iterdir()) == []  # nothing half written


@pytest.mark.parametrize("data", [b"", b"no tensors", b"\xff" * 64])
def test_what_is_no_safetensors_file_is_refused(tmp_path, data):
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(FormatError, match="is no safetensors file"):
        load_tensors(path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder: '.*nowhere'"):
        save_tensors(tmp_path / "nowhere" / "file", {"x": np.ones(2)})


def test_a_graph_comes_back_with_its_arrays_and_constants(tmp_path):
    graph = traced()
    assert graph.constants and graph.signature.captures == ("W",)
    path = tmp_path / "layer.mg"
    write_archive(path, graph, {"W": W}, {"learned": ["W"]})
    found, arrays, notes = read_archive(path)
    assert found == graph and notes == {"learned": ["W"]}
    assert list(arrays) == ["W"] and (arrays["W"] == W).all()


def test_each_part_can_be_read_by_other_tools(tmp_path):
    path = tmp_path / "layer.mg"
    write_archive(path, traced(), {"W": W})
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("manifest.json"))["version"] == 1
        assert archive.read("graph.txt").decode().startswith("graph layer(")


def rewritten(path, name, data):
    with zipfile.ZipFile(path) as archive:
        parts = {each: archive.read(each) for each in archive.namelist()}
    parts[name] = data(parts[name])
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in parts.items():
            archive.writestr(each, text)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("graph.txt", lambda text: text.replace(b"tanh", b"sinh"), "graph.txt .* is damaged"),
        ("arrays.safetensors", lambda text: text[:-1] + b"\1", "arrays.safetensors .* is damaged"),
        ("manifest.json", lambda text: b"{}", "is not what net.export"),
        ("manifest.json", lambda text: b"[1]", "is not what net.export"),
        (
            "manifest.json",
            lambda text: text.replace(b'"version": 1', b'"version": 9'),
            "this minigraph reads version 1",
        ),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, name, data, says):
    path = tmp_path / "layer.mg"
    write_archive(path, traced(), {"W": W})
    rewritten(path, name, data)
    with pytest.raises(FormatError, match=says):
        read_archive(path)


def test_what_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "layer.mg"
    path.write_text("import os")
    with pytest.raises(FormatError, match="is not what net.export"):
        read_archive(path)
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "none.mg")


def test_an_unknown_op_is_refused_by_name(tmp_path):
    graph = mg.parse("graph f(%x: f64[2]) {\n  %y = exp %x : f64[2]\n  return %y\n}")
    path = tmp_path / "f.mg"
    write_archive(path, graph, {})
    import hashlib

    wrong = str(graph).replace("exp", "system").encode()
    rewritten(path, "graph.txt", lambda text: wrong)
    digest = hashlib.sha256(wrong).hexdigest()

    def manifest(text):
        found = json.loads(text)
        found["parts"]["graph.txt"] = digest
        return json.dumps(found).encode()

    rewritten(path, "manifest.json", manifest)
    with pytest.raises(FormatError, match="system"):
        read_archive(path)
