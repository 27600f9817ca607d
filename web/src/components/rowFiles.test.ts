import { expect, it } from "vitest";
import { csvOf, jsonLinesOf } from "./rowFiles";

const ROWS = [
  [1, 'say "hi", then\ngo', null],
  [2n ** 62n, { a: [1] }, "plain"],
];

it("writes CSV that spreadsheets read", () => {
  expect(csvOf(["id", "text", "more"], ROWS)).toBe(
    'id,text,more\r\n1,"say ""hi"", then\ngo",\r\n4611686018427387904,"{""a"":[1]}",plain\r\n',
  );
});

it("writes an object for each row", () => {
  expect(jsonLinesOf(["id", "text"], [[1, null]])).toBe('{"id":1,"text":null}\n');
});
