"""ONNX Runtime, on its provider for CPUs, with all of its optimisations.

Arguments are bound once, as values of ONNX Runtime (`run_with_iobinding`); it allocates the results
of each call.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import formulas
from ..workloads import Case, Workload
from .base import Form, Prepared, Runner


class OnnxRuntime(Runner):
    framework = "onnxruntime"
    package = "onnxruntime"
    variants = {"ONNX Runtime": "a model of ONNX operators, all optimisations, arguments bound"}
    baseline = {"ONNX Runtime": "NumPy"}

    def load(self) -> None:
        import onnx
        import onnxruntime

        from ..natural import onnx as natural
        from ..natural import onnx_model

        self.onnx: Any = onnx
        self.onnxruntime: Any = onnxruntime
        self.natural: Any = natural
        self.onnx_model: Any = onnx_model

    def versions(self) -> Mapping[str, str]:
        return {"onnxruntime": self.onnxruntime.__version__, "onnx": self.onnx.__version__}

    def threads_used(self) -> str:
        options = self._options()
        return f"intra_op {options.intra_op_num_threads}, inter_op {options.inter_op_num_threads}"

    @classmethod
    def refuses(cls, variant: str, workload: Workload) -> str:
        if workload.kind == "training":
            return "ONNX Runtime's package for training has ended"
        if workload.kind == "loop":
            return "a Loop runs the nodes of its body one by one for each step"
        return ""

    def build(self, case: Case) -> Prepared:
        arguments = [np.asarray(each) for each in case.arguments]
        model = self.onnx_model.Model(arguments[0].dtype)
        inputs = [model.input(each) for each in arguments]
        written = getattr(self.natural, case.workload.family, None)
        if written is None:
            function = formulas.formula(case, model)
            proto = model.made(function(*inputs))
        else:
            function = written
            proto = model.made(function(model, *inputs, **case.parameters, **case.options))
        session = self._session(proto)
        binding = session.io_binding()
        for information, array in zip(session.get_inputs(), arguments, strict=True):
            value = self.onnxruntime.OrtValue.ortvalue_from_numpy(array)
            binding.bind_ortvalue_input(information.name, value)
        binding.bind_output(session.get_outputs()[0].name)

        def run() -> Any:
            session.run_with_iobinding(binding)
            return binding

        return Prepared(
            run,
            lambda result: result.copy_outputs_to_cpu(),
            source=function,
            details=lambda: self._details(proto),
            forms=functools.partial(self._forms, proto, model.lines),
        )

    def _options(self) -> Any:
        options = self.onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.execution_mode = self.onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = self.onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3  # errors alone
        return options

    def _session(self, proto: Any, options: Any = None) -> Any:
        return self.onnxruntime.InferenceSession(
            proto.SerializeToString(), options or self._options(), ["CPUExecutionProvider"]
        )

    def _optimized(self, proto: Any) -> Any:
        """The model as ONNX Runtime runs it."""
        with tempfile.TemporaryDirectory() as folder:
            options = self._options()
            options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
            self._session(proto, options)
            return self.onnx.load(options.optimized_model_filepath)

    def _details(self, proto: Any) -> dict[str, int]:
        after = self._optimized(proto)
        return {"nodes_before": len(proto.graph.node), "nodes_after": len(after.graph.node)}

    def _forms(self, proto: Any, lines: Mapping[str, int]) -> Sequence[Form]:
        stages = {"before": proto, "after": self._optimized(proto)}
        titles = {"before": "ONNX model", "after": "ONNX model, optimised by ONNX Runtime"}
        return [self._form(titles[stage], each, stage, lines) for stage, each in stages.items()]

    def _form(self, title: str, proto: Any, stage: str, lines: Mapping[str, int]) -> Form:
        shown = self.onnx.ModelProto()
        shown.CopyFrom(proto)
        for constant in shown.graph.initializer:
            if np.prod(constant.dims) > 16:  # of the large ones, names and types are enough
                constant.ClearField("raw_data")
        text = self.onnx.printer.to_text(shown)
        found = self.onnx_model.lines_of(text, lines)
        return Form(title, "onnx", text, len(proto.graph.node), stage, found)
