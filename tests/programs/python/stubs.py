"""The package's type stubs agree with the package: the same names, methods and parameters; and everything is
documented."""

import ast
import inspect
import pathlib

import regatta_mpi as rg

tree = ast.parse(pathlib.Path(rg.__file__).with_suffix(".pyi").read_text())
# Special methods need no documentation.
QUIET = {"__init__", "__await__", "__aiter__", "__anext__", "__iter__", "__next__", "__enter__", "__exit__"}


def names_of(statement):
    if isinstance(statement, ast.ImportFrom):
        return [alias.asname for alias in statement.names if alias.asname]
    if isinstance(statement, ast.AnnAssign):
        return [statement.target.id]
    return [statement.name] if hasattr(statement, "name") else []


def compare(where, declared, real):
    arguments = declared.args
    named = [argument.arg for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    try:
        found = inspect.signature(real)
    except ValueError:
        return
    there = [name for name, it in found.parameters.items() if it.kind not in (it.VAR_POSITIONAL, it.VAR_KEYWORD)]
    assert named == there, (where, named, there)
    plain = arguments.posonlyargs + arguments.args
    said = dict(zip([argument.arg for argument in plain[len(plain) - len(arguments.defaults) :]], arguments.defaults))
    said |= {argument.arg: default for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default}
    has = {name: it.default for name, it in found.parameters.items() if it.default is not it.empty}
    assert {name: ast.literal_eval(default) for name, default in said.items()} == has, (where, has)
    if declared.name not in QUIET:
        assert inspect.getdoc(real), f"{where} has no documentation"


def compare_class(statement, real):
    for member in statement.body:
        for name in names_of(member):
            assert hasattr(real, name) or name in getattr(real, "__slots__", ()) or name == "restarts", (real, name)
            attribute = inspect.getattr_static(real, name, None)
            if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)) and not member.decorator_list and name not in QUIET:
                compare(f"{statement.name}.{name}", member, attribute)


checked = set()
for statement in tree.body:
    for name in names_of(statement):
        if name.startswith("_"):
            continue
        checked.add(name)
        real = getattr(rg, name, None)
        if isinstance(statement, ast.ClassDef):
            if real is None:
                # Not exported: the type of a returned value.
                from regatta_mpi import groups

                real = getattr(groups, name)
            compare_class(statement, real)
        elif isinstance(statement, ast.FunctionDef):
            compare(name, statement, real)
        else:
            assert real is not None, name
missing = set(rg.__all__) - checked
assert not missing, missing
assert len(checked) > 50
print("all is well")
