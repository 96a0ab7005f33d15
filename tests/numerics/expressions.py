"""The expressions of golden_vectors.json: numbers, lists and comparisons, as Python writes them.

    value_of_text("[1.0]*3 + [f16(x)]", {"x": 0.1, "f16": f16})

Names mean what the caller gives. Everything else of Python (attributes, assignments, keywords) is a
ValueError.
"""

import ast
import operator

BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
          ast.Div: operator.truediv, ast.Pow: operator.pow, ast.LShift: operator.lshift,
          ast.RShift: operator.rshift, ast.BitAnd: operator.and_}
UNARY = {ast.USub: operator.neg, ast.Not: operator.not_}
COMPARISONS = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
               ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
               ast.In: lambda a, b: a in b}


def _compared(node, names):
    left = _value(node.left, names)
    for comparison, right in zip(node.ops, node.comparators):
        right = _value(right, names)
        if not COMPARISONS[type(comparison)](left, right):
            return False
        left = right
    return True


def _listed(node, names):
    """A comprehension of one loop over one name."""
    (loop,) = node.generators
    bound = ({**names, loop.target.id: item} for item in _value(loop.iter, names))
    return [_value(node.elt, inner) for inner in bound
            if all(_value(condition, inner) for condition in loop.ifs)]


def _joined(node, names):
    values = (_value(value, names) for value in node.values)
    return all(values) if isinstance(node.op, ast.And) else any(values)


FORMS = {
    ast.Expression: lambda n, names: _value(n.body, names),
    ast.Constant: lambda n, names: n.value,
    ast.Name: lambda n, names: names[n.id],
    ast.List: lambda n, names: [_value(item, names) for item in n.elts],
    ast.Tuple: lambda n, names: tuple(_value(item, names) for item in n.elts),
    ast.UnaryOp: lambda n, names: UNARY[type(n.op)](_value(n.operand, names)),
    ast.BinOp: lambda n, names: BINARY[type(n.op)](_value(n.left, names), _value(n.right, names)),
    ast.BoolOp: _joined,
    ast.Compare: _compared,
    ast.Call: lambda n, names: _value(n.func, names)(*(_value(a, names) for a in n.args)),
    ast.Subscript: lambda n, names: _value(n.value, names)[_value(n.slice, names)],
    ast.ListComp: _listed,
    ast.GeneratorExp: _listed,
}


def _value(node, names):
    if type(node) not in FORMS or getattr(node, "keywords", None):
        raise ValueError(f"{ast.unparse(node)}: not in an expression of a vector")
    return FORMS[type(node)](node, names)


def value_of_text(text, names):
    return _value(ast.parse(text, mode="eval"), names)
