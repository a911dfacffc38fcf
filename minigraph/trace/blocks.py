"""Blocks and parameters as traced code sees them, and what their classes provide for it.

The tracer knows neither `minigraph.nn` nor `minigraph.array`: classes tell what they are.

A *block* is any object of the library that holds arrays and settings (a Block, a Trainer, an
optimizer).  Its class says `traced_block_ = True`, and an instance provides

    _version            An int, raised by every change that a trace may have seen: an attribute set or
                        deleted (`__class__` too), a child or parameter replaced, a list of children
                        or hooks changed, `_version` of a child or parameter raised, an attribute of
                        its class or of a base that is a block class set or deleted (a metaclass with
                        `__setattr__` walks over the live instances).  Data written in place raises
                        nothing.
    traced_parts_()     {text: part}, its direct blocks and parameters, by what a user writes after its
                        own name: {".hidden": child, ".layers[0]": child, ".weight": parameter}.
    traced_state_()     {name: value}, all else that its methods read.  Numbers, strings, None, dtypes
                        and tuples are compared by type and value, everything else by identity.
    traced_covered_     A class attribute, names of its own dicts and lists (children, hooks, …) whose
                        every change raises `_version`; all other containers are compared at each call.

A *parameter* says `traced_parameter_ = True` and provides `_version` (raised when its array is made
anew, or its gradient, and when `grad_req` changes), `name`, `grad_req`, and `_data`: its eager array.

An *eager array* says `eager_array_ = True`; its slot `data_` holds the ndarray, and `grad` is its
gradient (an eager array) or None.

Code of the library is not rebuilt: it runs as it is, on traced arrays.  While a trace runs it asks

    seen(self)          in `__call__`, before hooks and `forward`: the object to go on with.  For a class
                        of the user's that is its twin, whose methods are rebuilt.
    seen(function)      before it calls what the user gave: a hook, an activation, a Lambda's function.
    captured(thing)     in `Parameter.data()` and wherever it uses an array that it holds (the state of
                        an optimizer): the traced array that stands for it.
    captured_gradient(parameter)    in `Parameter.grad()`.

Outside of traces each gives back what it was given (`captured_gradient`: None).
"""
