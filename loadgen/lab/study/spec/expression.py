"""Conditions in study files: names, numbers, strings, comparisons and arithmetic, evaluated
without Python's eval.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from loadgen.errors import BadInput

MAX_CHARACTERS = 500  # also limits the nesting
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, among: value in among,
    ast.NotIn: lambda value, among: value not in among,
}


class Expression:
    """A condition in Python's notation.

    It may have `and`, `or`, `not`, comparisons, `in` a list, `+ - * / // %` of numbers, names,
    numbers, quoted strings, `True`, `False` and `None`, the value of a knob that is not set.

    Args:
        text: The condition.

    Raises:
        ValueError: It has another form.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"longer than {MAX_CHARACTERS} characters")
        try:
            self._tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError("is not an expression") from error
        for node in ast.walk(self._tree):
            _check(node)
        self.names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the condition is true for these values of its names; a name without a
        value is None.

        Raises:
            BadInput: A value has the wrong type.
        """
        try:
            return bool(_value(self._tree, values))
        except ZeroDivisionError as error:
            raise BadInput(
                "expression", "it divides by 0", "write `NAME != 0 and` before it"
            ) from error
        except TypeError as error:
            unset = sorted(name for name in self.names if values.get(name) is None)
            if unset:
                remedy = f"write ({unset[0]} or 1) for one that may not be set"
                raise BadInput("expression", f"{', '.join(unset)} is not set", remedy) from error
            remedy = "compare numbers with numbers, and strings by == or with a list"
            raise BadInput("expression", str(error), remedy) from error


def _check(node: ast.AST) -> None:
    match node:
        case ast.Constant(value=value) if value is None or isinstance(
            value, bool | int | float | str
        ):
            return
        case ast.BinOp(op=op) if type(op) in _BINARY:
            return
        case ast.Compare(ops=ops) if all(type(op) in _COMPARED for op in ops):
            return
        case (
            ast.UnaryOp(op=ast.Not() | ast.USub())
            | ast.BoolOp()
            | ast.Name()
            | ast.List()
            | ast.Tuple()
        ):
            return
        case ast.operator() | ast.unaryop() | ast.boolop() | ast.cmpop() | ast.expr_context():
            return  # belongs to one of those above
    raise ValueError(f"{type(node).__name__} is not supported")


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values.get(name)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, values) for item in items]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, values)
        case ast.UnaryOp(operand=operand):
            return -_number(_value(operand, values))
        case ast.BoolOp(op=op, values=parts):
            result: Any = None
            for part in parts:
                result = _value(part, values)
                if bool(result) is isinstance(op, ast.Or):
                    break
            return result
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_number(_value(left, values)), _number(_value(right, values)))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            before = _value(left, values)
            for compared, comparator in zip(ops, comparators, strict=True):
                after = _value(comparator, values)
                try:
                    holds = bool(_COMPARED[type(compared)](before, after))
                except TypeError as error:
                    raise TypeError(f"{before!r} and {after!r} cannot be compared") from error
                if not holds:
                    return False
                before = after
            return True
    raise AssertionError(f"{type(node).__name__} has been checked")


def _number(value: Any) -> Any:
    """Return a number, or raise TypeError: a string times a number could fill the memory."""
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value
