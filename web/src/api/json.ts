/**
 * JSON with integers of 64 bits, as events have them. Those that a number cannot hold are BigInts, so that no digit
 * is lost on the way through the browser; `JSON.stringify` writes them as they came. A browser too old for that
 * rounds them, as all did before.
 */

type Raw = typeof JSON & { rawJSON?: (text: string) => unknown };

const { rawJSON } = JSON as Raw;

// Texts in YAML have them in any browser, and without this they could not be sent at all.
Object.defineProperty(BigInt.prototype, "toJSON", {
  value(this: bigint) {
    return rawJSON ? rawJSON(this.toString()) : Number(this);
  },
  configurable: true,
});

/** What a text in JSON says. Throws SyntaxError if it is none. */
export function parse(text: string): unknown {
  // To look at each value takes time that is only worth it where there is one.
  if (!rawJSON || !/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, exact as (key: string, value: unknown) => unknown);
}

function exact(_: string, value: unknown, { source = "" }: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value) || !/^-?\d+$/.test(source)) return value;
  return BigInt(source);
}
