"""Expression: conditions in study files: names, numbers, words, comparisons and arithmetic, and nothing else."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from loadgen.errors import BadInput

LONGEST = 500  # characters; deeper nesting than that allows is no condition that anybody reads
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
    """A condition in Python's notation, of which a few forms are understood; nothing of it is executed by Python.

    `and`, `or`, `not`, comparisons, `in` a list, `+ - * / // %` of numbers, names, numbers, words in quotes, `True`,
    `False` and `None`, which a knob is that is not set.

    Args:
        text: The condition.

    Raises:
        ValueError: It has another form.
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ValueError(f"longer than {LONGEST} characters")
        try:
            self._tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError("is no expression") from error
        for node in ast.walk(self._tree):
            _check(node)
        self.names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is true where its names have these values; those that have none are None.

        Raises:
            BadInput: A value is of no use where it stands.
        """
        try:
            return bool(_value(self._tree, values))
        except ZeroDivisionError as error:
            raise BadInput("expression", "it divides by 0", "write `NAME != 0 and` before it") from error
        except TypeError as error:
            unset = sorted(name for name in self.names if values.get(name) is None)
            if unset:
                remedy = f"write ({unset[0]} or 1) for one that may not be set"
                raise BadInput("expression", f"{', '.join(unset)} is not set", remedy) from error
            remedy = "compare numbers with numbers, and words by == or with a list"
            raise BadInput("expression", str(error), remedy) from error


def _check(node: ast.AST) -> None:
    """Refuse what is not among the forms that `_value` knows."""
    match node:
        case ast.Constant(value=value) if value is None or isinstance(value, bool | int | float | str):
            return
        case ast.BinOp(op=op) if type(op) in _BINARY:
            return
        case ast.Compare(ops=ops) if all(type(op) in _COMPARED for op in ops):
            return
        case ast.UnaryOp(op=ast.Not() | ast.USub()) | ast.BoolOp() | ast.Name() | ast.List() | ast.Tuple():
            return
        case ast.operator() | ast.unaryop() | ast.boolop() | ast.cmpop() | ast.expr_context():
            return  # belongs to one of those above
    raise ValueError(f"{type(node).__name__} is not understood")


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
            found: Any = None
            for part in parts:
                found = _value(part, values)
                if bool(found) is isinstance(op, ast.Or):
                    break
            return found
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_number(_value(left, values)), _number(_value(right, values)))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            before = _value(left, values)
            for compared, comparator in zip(ops, comparators, strict=True):
                after = _value(comparator, values)
                if not _holds(compared, before, after):
                    return False
                before = after
            return True
    raise AssertionError(f"{type(node).__name__} has been checked")


def _holds(compared: ast.cmpop, before: Any, after: Any) -> bool:
    try:
        return bool(_COMPARED[type(compared)](before, after))
    except TypeError as error:
        raise TypeError(f"{before!r} and {after!r} cannot be compared like that") from error


def _number(value: Any) -> Any:
    """A number: words times a number would fill the memory."""
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value
