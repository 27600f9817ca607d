"""Lossless conversion of Arrow columns: values that do not convert become null and are marked.

The schema of a stream may change under the events it holds, and a producer may send Arrow data of its own
types; this module converts both. Values keep their meaning: numbers become numbers and text becomes bytes,
but text is never parsed, and only floating point and decimal numbers may be rounded, to floating point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_

Lost: TypeAlias = "pa.BooleanArray | None"
"""True where a value, or a part of it, could not be converted; None: nothing was lost."""

Leaf: TypeAlias = "Callable[[pa.Array, pa.DataType], tuple[pa.Array, Lost]]"

INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
EXACT_IN_FLOAT = {16: 8, 32: 16, 64: 32}
"""Bits of a floating point type, and of the widest integer type that it holds exactly."""


def is_wider(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether every value of type `old` is also a value of type `new`."""
    if old == new:
        return True
    if is_.is_struct(old) and is_.is_struct(new):
        return all(
            field.nullable if (at := old.get_field_index(field.name)) < 0 else _fits(old.field(at), field)
            for field in new
        )
    if is_.is_list(old) and is_.is_list(new):
        return _fits(old.value_field, new.value_field)
    if is_.is_map(old) and is_.is_map(new):
        return is_wider(old.key_type, new.key_type) and _fits(old.item_field, new.item_field)
    if _is_number(old) and _is_number(new):
        return _is_wider_number(old, new)
    return bool((is_.is_string(old) and is_.is_binary(new)) or (is_.is_date32(old) and _is_local_time(new)))


def convert(array: pa.Array, to: pa.DataType, leaf: Leaf | None = None) -> tuple[pa.Array, Lost]:
    """`array` converted to `to`, and the mask of values that could not be converted.

    `leaf` converts values that are not nested, in place of a safe cast.
    """
    have = array.type
    if have == to:
        return array, None
    if is_.is_dictionary(have):
        return convert(array.dictionary_decode(), to, leaf)
    if is_view(have):
        # Arrow's own cast also follows the views of null rows, which may point anywhere in a broken body.
        return convert(pa.array(array.to_pylist(), pa.large_binary()), to, leaf)
    if isinstance(array, pa.ExtensionArray):
        return convert(array.storage, to, leaf)
    if is_.is_null(have):
        return pa.nulls(len(array), to), None
    if is_.is_struct(have) and is_.is_struct(to):
        return _struct(array, to, leaf)
    if _is_list(have) and is_.is_list(to):
        return _list(array, to, leaf)
    if is_.is_map(have) and is_.is_map(to) and is_wider(have.key_type, to.key_type):
        return _map(array, to, leaf)
    return (leaf or cast)(array, to)


def cast(array: pa.Array, to: pa.DataType) -> tuple[pa.Array, Lost]:
    """Convert values of a non-nested type to another type where they keep their meaning."""
    if not _related(array.type, to):
        return pa.nulls(len(array), to), _marks(array.is_valid())
    made = _cast(array, to)
    return made, _marks(pc.and_(array.is_valid(), made.is_null()))


def is_view(kind: pa.DataType) -> bool:
    """Whether the type is a view type: its rows point at values that are stored elsewhere."""
    return bool(is_.is_string_view(kind) or is_.is_binary_view(kind))


def as_lists(array: pa.MapArray) -> pa.ListArray:
    """Maps as lists of their entries, for which Arrow has more functions."""
    kind = array.type
    return array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))


def _is_wider_number(old: pa.DataType, new: pa.DataType) -> bool:
    whole = bool(is_.is_signed_integer(old))
    if is_.is_decimal(new):
        digits = new.precision - new.scale
        if is_.is_decimal(old):
            return bool(old.scale <= new.scale and old.precision - old.scale <= digits)
        return bool(whole and INTEGER_DIGITS[old.bit_width] <= digits)
    if is_.is_floating(new) and whole:
        return bool(old.bit_width <= EXACT_IN_FLOAT[new.bit_width])
    same = is_.is_signed_integer(new) if whole else (is_.is_floating(old) and is_.is_floating(new))
    return bool(same and old.bit_width <= new.bit_width)


def _fits(old: pa.Field, new: pa.Field) -> bool:
    return is_wider(old.type, new.type) and (new.nullable or not old.nullable)


def _is_local_time(kind: pa.DataType) -> bool:
    return bool(is_.is_timestamp(kind) and kind.tz is None)


def _is_number(kind: pa.DataType) -> bool:
    return any(check(kind) for check in (is_.is_integer, is_.is_floating, is_.is_decimal))


def _is_list(kind: pa.DataType) -> bool:
    return any(check(kind) for check in (is_.is_list, is_.is_large_list, is_.is_fixed_size_list))


def _is_bytes(kind: pa.DataType) -> bool:
    text = (is_.is_string, is_.is_large_string)
    plain = (is_.is_binary, is_.is_large_binary, is_.is_fixed_size_binary)
    return any(check(kind) for check in (*text, *plain))


def _related(have: pa.DataType, to: pa.DataType) -> bool:
    """Whether some values of one type mean the same in the other."""
    if is_.is_decimal(to):
        return _is_number(have) and not is_.is_floating(have)
    if _is_number(to):
        return _is_number(have)
    if is_.is_timestamp(to):
        return is_.is_date(have) or (is_.is_timestamp(have) and (have.tz is None or to.tz is not None))
    if is_.is_date(to):
        return bool(is_.is_date(have))
    return _is_bytes(have) and _is_bytes(to)


def _cast(array: pa.Array, to: pa.DataType) -> pa.Array:
    """Arrow's safe cast; values that it rejects become null one by one."""
    source = array
    try:
        if is_.is_decimal(to):
            # Arrow rejects integers if the target type could be too narrow, regardless of their values, and a
            # decimal scaled beyond 128 bits silently becomes a wrong number. A wide type avoids both.
            narrow = array if is_.is_integer(array.type) else array.cast(pa.decimal128(38, array.type.scale))
            source = narrow.cast(pa.decimal256(76, to.scale))
        made = source.cast(to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(array) <= 1:
            return pa.nulls(len(array), to)
        half = len(array) // 2
        return pa.concat_arrays([_cast(array[:half], to), _cast(array[half:], to)])
    if is_.is_floating(to) and pc.any(overflow := _overflow(source, made)).as_py():
        made = pc.if_else(overflow, pa.scalar(None, to), made)
    return made


def _overflow(source: pa.Array, made: pa.Array) -> pa.BooleanArray:
    """Where a finite number became infinite."""
    infinite = pc.is_inf(made)
    return pc.and_not(infinite, pc.is_inf(source)) if is_.is_floating(source.type) else infinite


def _struct(array: pa.StructArray, to: pa.StructType, leaf: Leaf | None) -> tuple[pa.Array, Lost]:
    children, lost = [], None
    for field in to:
        at = array.type.get_field_index(field.name)
        if at < 0:
            children.append(pa.nulls(len(array), field.type))
            continue
        made, missing = convert(pc.struct_field(array, [at]), field.type, leaf)
        children.append(made)
        lost = _either(lost, missing)
    return pa.StructArray.from_arrays(children, fields=list(to), mask=array.is_null()), lost


def _list(array: pa.Array, to: pa.ListType, leaf: Leaf | None) -> tuple[pa.Array, Lost]:
    values, lost = convert(array.flatten(), to.value_type, leaf)
    made = pa.ListArray.from_arrays(_offsets(array), values, type=to, mask=array.is_null())
    return made, _parents(array, lost)


def _map(array: pa.MapArray, to: pa.MapType, leaf: Leaf | None) -> tuple[pa.Array, Lost]:
    lists = as_lists(array)
    entries = lists.flatten()
    keys, _ = convert(pc.struct_field(entries, [0]), to.key_type)
    items, lost = convert(pc.struct_field(entries, [1]), to.item_type, leaf)
    made = pa.MapArray.from_arrays(_offsets(lists), keys, items, type=to, mask=array.is_null())
    return made, _parents(lists, lost)


def _offsets(array: pa.Array) -> pa.Int32Array:
    """The start of each list in the flattened values, which omit null lists."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _parents(array: pa.Array, lost: Lost) -> Lost:
    """A mask of the lists with a value that could not be converted."""
    if lost is None:
        return None
    parents = pc.list_parent_indices(array).filter(lost)
    return pc.is_in(pa.array(range(len(array)), parents.type), value_set=parents)


def _marks(mask: pa.BooleanArray) -> Lost:
    return mask if pc.any(mask).as_py() else None


def _either(one: Lost, other: Lost) -> Lost:
    return pc.or_(one, other) if one is not None and other is not None else one or other
