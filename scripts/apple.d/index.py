"""Reads the index that the compiler writes beside a debug build, with the toolchain's libIndexStore."""

import ctypes
import pathlib
import shutil


class Text(ctypes.Structure):
    """`indexstore_string_ref_t`: bytes without an end."""

    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    def __str__(self):
        return ctypes.string_at(self.data, self.length).decode() if self.data else ""


def library():
    swiftc = shutil.which("swiftc")
    if swiftc is None:
        raise SystemExit("no swiftc on the PATH")
    store = ctypes.CDLL(str(pathlib.Path(swiftc).resolve().parent.parent / "lib" / "libIndexStore.so"))
    for name, result, arguments in [
        ("store_create", ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_void_p]),
        ("store_units_apply_f", ctypes.c_bool, [ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p]),
        ("unit_reader_create", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]),
        ("unit_reader_get_module_name", Text, [ctypes.c_void_p]),
        ("unit_reader_dependencies_apply_f", ctypes.c_bool, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
        ("unit_dependency_get_kind", ctypes.c_int, [ctypes.c_void_p]),
        ("unit_dependency_get_name", Text, [ctypes.c_void_p]),
        ("unit_dependency_get_filepath", Text, [ctypes.c_void_p]),
        ("record_reader_create", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]),
        ("record_reader_occurrences_apply_f", ctypes.c_bool, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
        ("occurrence_get_symbol", ctypes.c_void_p, [ctypes.c_void_p]),
        ("occurrence_get_roles", ctypes.c_uint64, [ctypes.c_void_p]),
        ("occurrence_get_line_col", None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
        ("symbol_get_usr", Text, [ctypes.c_void_p]),
        ("symbol_get_name", Text, [ctypes.c_void_p]),
    ]:
        function = getattr(store, "indexstore_" + name)
        function.restype, function.argtypes = result, arguments
        setattr(store, name, function)
    return store


RECORD = 2
REFERENCE = 1 << 2
IMPLICIT = 1 << 8


def references(folder, modules):
    """Returns file, line, USR, name and implicitness of each reference in the sources of the modules."""
    store = library()
    opened = store.store_create(str(folder).encode(), None)
    if not opened:
        raise SystemExit(f"no index in {folder}")
    units, found = [], []

    def take_unit(_, name):
        units.append(str(name))
        return True

    each_unit = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, Text)(take_unit)
    store.store_units_apply_f(opened, 0, None, ctypes.cast(each_unit, ctypes.c_void_p))
    for unit in units:
        reader = store.unit_reader_create(opened, unit.encode(), None)
        if not reader or str(store.unit_reader_get_module_name(reader)) not in modules:
            continue
        records = []

        def take(_, dependency):
            if store.unit_dependency_get_kind(dependency) == RECORD:
                records.append(
                    (str(store.unit_dependency_get_name(dependency)), str(store.unit_dependency_get_filepath(dependency)))
                )
            return True

        callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)(take)
        store.unit_reader_dependencies_apply_f(reader, None, ctypes.cast(callback, ctypes.c_void_p))
        for record, file in records:
            record_reader = store.record_reader_create(opened, record.encode(), None)
            if not record_reader:
                continue

            def occur(_, occurrence, file=file):
                roles = store.occurrence_get_roles(occurrence)
                if roles & REFERENCE:
                    line, column = ctypes.c_uint(), ctypes.c_uint()
                    store.occurrence_get_line_col(occurrence, ctypes.byref(line), ctypes.byref(column))
                    symbol = store.occurrence_get_symbol(occurrence)
                    usr, name = str(store.symbol_get_usr(symbol)), str(store.symbol_get_name(symbol))
                    found.append((file, line.value, usr, name, bool(roles & IMPLICIT)))
                return True

            each = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)(occur)
            store.record_reader_occurrences_apply_f(record_reader, None, ctypes.cast(each, ctypes.c_void_p))
    return found
