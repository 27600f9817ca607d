// Runs in V8 before a user's script. Events arrive and leave as columns, in one JSON text each way; this script
// converts them to objects and back. `values.py` validates values; this script only handles values that JSON
// can't represent: integers beyond 2^53, NaN, dates, and properties without a column.
//
// A shape describes the values of a column: 'int', 'float', 'decimal', 'bool', 'text', 'bytes', 'date', 'time',
// 'local' (a time without a zone), {list: shape}, {map: shape} or {struct: [[name, shape], …]}.
(() => {
  'use strict'
  const {parse, stringify, rawJSON} = JSON
  const {isArray} = Array
  const {defineProperty, entries, getOwnPropertyDescriptor, hasOwn, prototype} = Object
  const AsyncFunction = (async () => {}).constructor
  const ROW = Symbol('row') // symbols are copied by {...event}, and hidden from scripts
  const META = Symbol('meta')
  const MOST_LINES = 100
  const LONGEST_LINE = 2000

  class Fault extends Error {
    constructor(code, message) {
      super(message)
      this.code = code
    }
  }

  // Console

  let lines = []
  let omitted = 0

  const told = value => {
    if (typeof value === 'string') return value
    if (typeof value === 'bigint') return `${value}n`
    if (value instanceof Error) return value.stack
    if (typeof value !== 'object' || value === null) return String(value)
    try {
      return stringify(value, (_, inner) => (typeof inner === 'bigint' ? `${inner}n` : inner))
    } catch {
      return String(value) // the value refers to itself
    }
  }

  const printer = prefix => (...values) => {
    if (lines.length === MOST_LINES) {
      omitted++
      return
    }
    const line = prefix + values.map(told).join(' ')
    lines.push((line.length > LONGEST_LINE ? line.slice(0, LONGEST_LINE) + '…' : line).toWellFormed())
  }

  const plain = printer('')
  globalThis.console = {
    log: plain, info: plain, debug: plain, warn: printer('warning: '), error: printer('error: '),
  }
  // Additions of mini-racer, functions that wait, and memory that no limit includes.
  const removed = 'setTimeout clearTimeout __timer_manager WebAssembly SharedArrayBuffer Atomics'
  for (const name of removed.split(' ')) globalThis[name] = undefined

  // Scripts and modules

  const names = []
  const modules = new Map()

  const require = name => {
    const found = modules.get(name)
    if (!found) {
      const known = [...modules.keys()].join(', ') || 'none'
      throw new Error(`there is no module '${name}'; under modules: ${known}`)
    }
    if (!found.module) {
      found.module = {exports: {}}
      found.body(found.module, found.module.exports, require)
    }
    return found.module.exports
  }

  const place = error => {
    const at = /penstock:(\d+):(\d+):\d+/.exec(error.stack ?? '')
    if (!at) return ''
    return at[1] === '0' ? `line ${at[2]}: ` : `${names[at[1]]}, line ${at[2]}: `
  }

  const described = error =>
    error instanceof Error ? `${place(error)}${error.name}: ${error.message}` : `${told(error)} was thrown`

  const verdict = error => {
    const full = error instanceof RangeError && error.message === 'Array buffer allocation failed'
    const code = error instanceof Fault ? error.code : full ? 'js_memory_limit' : 'js_error'
    const message = error instanceof Fault ? error.message : described(error)
    return [code, message.toWellFormed()] // a lone surrogate can't be encoded as UTF-8
  }

  // Events in

  const revive = (shape, value) => {
    if (value === null) return value
    if (typeof shape === 'string') {
      if (typeof value !== 'string' || (shape !== 'int' && shape !== 'float')) return value
      const number = Number(value)
      return shape === 'float' || Number.isSafeInteger(number) ? number : BigInt(value)
    }
    if (shape.list) return value.map(item => revive(shape.list, item))
    const fields = shape.struct ?? entries(value).map(([name]) => [name, shape.map])
    for (const [name, inner] of fields) value[name] = revive(inner, value[name])
    return value
  }

  const literal = text => (text === '__proto__' ? '["__proto__"]' : stringify(text))

  const builder = columns => {
    const members = columns.map(([name], i) => `${literal(name)}: c${i}[i]`)
    return new Function('columns', 'count', 'ROW', `
      const [${columns.map((_, i) => `c${i}`).join()}] = columns
      const events = new Array(count)
      for (let i = 0; i < count; i++) events[i] = {${[...members, '[ROW]: i'].join()}}
      return events`)
  }

  // The metadata of an event, created when a script reads it. A copy of an event has its own metadata.

  let known = null

  const installMeta = () =>
    defineProperty(prototype, '$meta', {
      configurable: true,
      get() {
        const row = this[ROW]
        if (row === undefined) return undefined
        const held = this[META]
        if (held?.owner === this) return held.meta
        const meta = held
          ? {...held.meta, headers: {...held.meta.headers}}
          : {
              key: known.key[row], headers: {...known.headers[row]}, offset: revive('int', known.offset[row]),
              time: known.time[row], sink: known.sinks[row],
            }
        this[META] = {owner: this, meta}
        return meta
      },
      set(value) {
        defineProperty(this, '$meta', {value, configurable: true, enumerable: true, writable: true})
      },
    })

  const label = (value, what) => {
    if (value === null || value === undefined) return null
    if (typeof value === 'string' && value.isWellFormed()) return value
    if (['number', 'bigint', 'boolean'].includes(typeof value)) return String(value)
    throw new Fault('bad_meta', `$meta.${what} is ${told(value)}, not text`)
  }

  const labels = value => {
    if (value === null || value === undefined) return null
    if (typeof value !== 'object' || isArray(value)) {
      throw new Fault('bad_meta', `$meta.headers is ${told(value)}, not an object of names and texts`)
    }
    return entries(value).map(([name, text]) => [label(name, 'headers'), label(text, `headers.${name}`)])
  }

  const targets = (value, sinks) => {
    if (value === null || value === undefined) return null
    const chosen = isArray(value) ? value : [value]
    if (!chosen.length) throw new Fault('unknown_sink', '$meta.sink is empty: leave the event out to drop it')
    for (const sink of chosen) {
      if (typeof sink !== 'string' || (sinks.length && !sinks.includes(sink))) {
        throw new Fault('unknown_sink', `there is no sink ${told(sink)}; one of: ${sinks.join(', ')}`)
      }
    }
    return chosen
  }

  const metaOf = (event, sinks) => {
    const row = event[ROW]
    const own = getOwnPropertyDescriptor(event, '$meta')?.value
    if (own !== undefined && (own === null || typeof own !== 'object')) {
      throw new Fault('bad_meta', `$meta is ${told(own)}, not an object`)
    }
    const before = event[META]?.meta
      ?? (row === undefined ? {} : {key: known.key[row], headers: known.headers[row], sink: known.sinks[row]})
    const meta = {...before, ...own}
    return [label(meta.key, 'key'), labels(meta.headers), targets(meta.sink, sinks)]
  }

  // Events out

  const misfit = (at, value, wanted) => {
    const found = isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
    throw new Fault('wrong_type', `column '${at}' is ${found}, not ${wanted}`)
  }

  const extra = (at, columns) => {
    const known = columns.map(([name]) => name).join(', ')
    const message = `the event has an unexpected column '${at}'; there are: ${known}`
    throw new Fault('extra_property', message)
  }

  const writeNumber = (shape, value) => {
    if (shape === 'date' || shape === 'time' || shape === 'local') return writeDate(shape, new Date(value))
    if (shape === 'decimal' || !Number.isFinite(value)) return String(value)
    if (value === 0) return shape === 'float' && Object.is(value, -0) ? rawJSON('-0.0') : 0
    // With an exponent, so that it isn't read as an exact integer.
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? rawJSON(value.toExponential()) : value
  }

  const writeDate = (shape, date) => {
    if (Number.isNaN(date.getTime())) return 'Invalid Date'
    const text = date.toISOString()
    return shape === 'date' ? text.slice(0, -14) : shape === 'local' ? text.slice(0, -1) : text
  }

  const writeObject = (shape, value, at) => {
    if (shape.list) {
      if (!isArray(value)) misfit(at, value, 'an array')
      return value.map((item, i) => write(shape.list, item, `${at}[${i}]`))
    }
    if (shape.map) {
      if (isArray(value)) misfit(at, value, 'an object')
      const pairs = value instanceof Map ? [...value] : entries(value)
      return Object.fromEntries(pairs.map(([key, item]) => {
        const name = String(key)
        if (!name.isWellFormed()) throw new Fault('bad_text', `a key of '${at}' has half a surrogate pair`)
        return [name, write(shape.map, item, `${at}["${name}"]`)]
      }))
    }
    if (shape.struct) {
      if (isArray(value)) misfit(at, value, 'an object')
      const made = Object.fromEntries(shape.struct.map(([name, inner]) =>
        [name, write(inner, hasOwn(value, name) ? value[name] : null, `${at}.${name}`)]))
      for (const name in value) {
        if (!hasOwn(made, name) && value[name] !== undefined) extra(`${at}.${name}`, shape.struct)
      }
      return made
    }
    return misfit(at, value, 'a simple value')
  }

  // A value as JSON, without loss.
  const write = (shape, value, at) => {
    switch (typeof value) {
      case 'undefined':
        return null
      case 'string':
        if (!value.isWellFormed()) throw new Fault('bad_text', `column '${at}' has half a surrogate pair`)
        return value
      case 'boolean':
        return value
      case 'number':
        return writeNumber(shape, value)
      case 'bigint':
        return shape === 'decimal' ? String(value) : rawJSON(String(value))
      case 'object':
        if (value === null) return null
        if (value instanceof Date) return writeDate(shape, value)
        if (shape === 'bytes' && value instanceof Uint8Array) return value.toBase64()
        return writeObject(shape, value, at)
      default:
        return misfit(at, value, 'a value')
    }
  }

  // Values that can be converted to JSON as they are; all others are converted by `write`.
  const PLAIN = {
    int: 'Number.isSafeInteger(v)',
    float: "typeof v === 'number' && v - v === 0 && (v !== 0 || 1 / v > 0) && v < 9e15 && v > -9e15",
    bool: "typeof v === 'boolean'",
  }
  const TEXT = "typeof v === 'string' && v.isWellFormed()"

  const collector = columns => {
    const reads = columns.map(([name, shape], i) => {
      const read = `event[${stringify(name)}]`
      const plain = typeof shape === 'string' ? `${PLAIN[shape] ?? TEXT} ? v : ` : ''
      return `
        v = ${name in prototype ? `hasOwn(event, "${name}") ? ${read} : undefined` : read}
        if (v !== undefined) seen++
        c${i}[j] = v === undefined || v === null ? null : ${plain}slow(j, ${i}, v)`
    })
    return new Function('events', 'columns', 'rows', 'slow', 'check', 'hasOwn', 'ROW', `
      const [${columns.map((_, i) => `c${i}`).join()}] = columns
      for (let j = 0; j < events.length; j++) {
        const event = events[j]
        let seen = 0, v
        ${reads.join('')}
        const row = event[ROW]
        rows[j] = row === undefined ? -1 : row
        for (const _ in event) seen--
        if (seen < 0) check(j, event)
      }`)
  }

  const noEvent = (value, inside) => {
    const nothing = value === null || value === undefined
    const what = nothing ? String(value) : isArray(value) ? 'an array' : `a ${typeof value}`
    const found = (inside ? 'an array with ' : '') + what
    const hint = nothing ? '; use filter to drop events' : ''
    throw new Fault('wrong_type', `processBatch returned ${found} in place of an event${hint}`)
  }

  const listed = (result, events) => {
    if (result === undefined || result === null) return events
    if (typeof result?.then === 'function') {
      throw new Fault('js_async', 'processBatch returned a Promise: nothing in it may be async')
    }
    const made = isArray(result) ? result : [result]
    for (let j = 0; j < made.length; j++) {
      const event = made[j]
      if (typeof event !== 'object' || event === null || isArray(event)) noEvent(event, isArray(result))
    }
    return made
  }

  const collect = (events, columns, gather, config) => {
    const made = columns.map(() => new Array(events.length))
    const rows = new Array(events.length)
    const odd = columns.map(([, shape]) => typeof shape !== 'string')
    const faults = []
    const guarded = (j, action) => {
      try {
        return action()
      } catch (error) {
        faults.push([j, ...verdict(error)])
        return null
      }
    }
    const slow = (j, i, value) => {
      odd[i] = true
      return guarded(j, () => write(columns[i][1], value, columns[i][0]))
    }
    const check = (j, event) => guarded(j, () => {
      for (const name in event) {
        if (name !== '$meta' && event[name] !== undefined && !columns.some(([other]) => other === name)) {
          extra(name, columns)
        }
      }
    })
    gather(events, made, rows, slow, check, hasOwn, ROW)
    const meta = []
    if (config.meta) {
      events.forEach((event, j) => {
        if (event[META] === undefined && !hasOwn(event, '$meta')) return
        const set = guarded(j, () => metaOf(event, config.sinks))
        if (set) meta.push([j, ...set])
      })
    }
    return {columns: made, rows, odd, faults, meta}
  }

  // The host

  globalThis.$define = (index, name, body) => {
    names[index] = name
    if (index) modules.set(name, {body})
    else modules.main = body
  }

  // Loads the script. Returns the function from an input batch to an output batch.
  globalThis.$start = config => {
    delete globalThis.$define
    delete globalThis.$start
    if (config.meta) installMeta()
    let processBatch
    try {
      const main = {exports: {}}
      processBatch = modules.main(main, main.exports, require) ?? main.exports.processBatch
    } catch (error) {
      throw new Error(described(error))
    }
    if (typeof processBatch !== 'function') throw new Error('there is no function processBatch(events)')
    if (processBatch instanceof AsyncFunction) {
      throw new Error('processBatch is async, and nothing in it may be')
    }
    const build = builder(config.input)
    const gather = collector(config.output)
    return text => {
      lines = []
      omitted = 0
      let answer
      try {
        const {columns, special, count, meta} = parse(text)
        for (const i of special) columns[i] = columns[i].map(value => revive(config.input[i][1], value))
        known = meta
        const events = build(columns, count, ROW)
        answer = collect(listed(processBatch(events), events), config.output, gather, config)
      } catch (error) {
        const [code, message] = verdict(error)
        answer = {code, message}
      }
      known = null
      return stringify({...answer, lines, omitted})
    }
  }
})()
