"""Wrappers for DeltaForge scripts, whose events are objects, while Penstock's are JSON text."""

from __future__ import annotations


def wrapped(script: str, function: str) -> str:
    """Wrap a script that works on objects, for events whose `value` is JSON text."""
    inside = "\n".join(f"  {line}" if line else line for line in script.strip().split("\n"))
    return f"""\
const script = (() => {{
{inside}
  return {function}
}})()
function processBatch(events) {{
  const given = events.map(event => {{
    return Object.defineProperty(JSON.parse(event.value), '$event', {{value: event}})
  }})
  const made = script(given) ?? given
  return [].concat(made).map(each => ({{...(each.$event ?? events[0]), value: JSON.stringify(each)}}))
}}
"""


FLATTEN = """\
function flat(node, depth, prefix = '', made = {}) {
  for (const [name, value] of Object.entries(node)) {
    const object = value !== null && typeof value === 'object' && !Array.isArray(value)
    const nested = object && Object.keys(value).length
    if (nested && depth > 1) flat(value, depth - 1, prefix + name + SEPARATOR, made)
    else made[prefix + name] = value
  }
  return made
}
function processBatch(events) {
  return events.map(event => {
    const change = JSON.parse(event.value)
    for (const image of ['before', 'after']) if (change[image]) change[image] = flat(change[image], DEPTH)
    return {...event, value: JSON.stringify(change)}
  })
}
"""
