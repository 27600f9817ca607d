import type { Place } from "#/api/kinds";

/** A document to begin with. */
export interface Template {
  title: string;
  about: string;
  text: string;
}

const PIPELINES: Template[] = [
  {
    title: "Generate → SQL → files",
    about:
      "Generates orders, keeps those over 20 and writes Parquet files. Needs no other system: a good first pipeline.",
    text: `apiVersion: penstock/v1
kind: Pipeline
metadata:
  name: my first pipeline
spec:
  source:
    type: generate
    rate: 10
    row:
      id: seq
      customer: concat('c', seq % 50)
      amount: round(rand() * 100, 2)
      at: time
  processors:
    - id: taxed
      type: sql
      query: |
        SELECT id, customer, amount, round(amount * 1.19, 2) AS gross, at
        FROM input
        WHERE amount > 20
  sinks:
    - id: lake
      type: file
      path: \${PENSTOCK_HOME}/out/orders
      format: parquet
  batch:
    max_ms: 5000
`,
  },
  {
    title: "HTTP → JavaScript → stream",
    about: "Accepts events at POST /ingest, transforms them with a script and publishes them to a stream.",
    text: `apiVersion: penstock/v1
kind: Pipeline
metadata:
  name: orders in
spec:
  source:
    type: http
    path: /orders
    schema: id BIGINT, customer STRING, amount DOUBLE
  processors:
    - id: gross
      type: javascript
      inline: |
        function processBatch(events) {
          return events
            .filter(event => event.amount > 0)
            .map(event => ({...event, gross: event.amount * 1.19}))
        }
      schema: id BIGINT, customer STRING, amount DOUBLE, gross DOUBLE
  sinks:
    - id: orders
      type: stream
      stream: orders # a stream that exists: choose one, or make it first
`,
  },
  {
    title: "Stream → window → stream",
    about: "Counts events per minute by event time and publishes one event per window.",
    text: `apiVersion: penstock/v1
kind: Pipeline
metadata:
  name: orders per minute
spec:
  source:
    type: stream
    stream: orders # a stream that exists
    position: earliest
  processors:
    - id: per_minute
      type: window
      kind: tumbling
      time: at
      size: 1m
      allowed_lateness: 10s
      keys: [customer]
      aggregates:
        orders: count(*)
        revenue: sum(amount)
  sinks:
    - id: minutes
      type: stream
      stream: orders_per_minute
`,
  },
  {
    title: "Empty",
    about: "Start from an empty canvas.",
    text: `apiVersion: penstock/v1
kind: Pipeline
metadata:
  name: new pipeline
spec:
  processors: []
  sinks: []
`,
  },
];

const TASKS: Template[] = [
  {
    title: "Stream → SQL → stream",
    about: "Reads one stream, transforms its events and publishes them to another.",
    text: `apiVersion: penstock/v1
kind: Task
metadata:
  name: large orders
spec:
  input: orders # a stream that exists
  processors:
    - id: large
      type: filter
      where: amount > 1000
  outputs:
    - stream: large_orders
`,
  },
  {
    title: "Shared steps",
    about: "Processors only: pipelines that refer to the task run them.",
    text: `apiVersion: penstock/v1
kind: Task
metadata:
  name: shared steps
spec:
  processors:
    - id: select
      type: sql
      query: |
        SELECT *
        FROM input
`,
  },
  {
    title: "Empty",
    about: "Start from an empty canvas.",
    text: `apiVersion: penstock/v1
kind: Task
metadata:
  name: new task
spec:
  processors: []
  outputs: []
`,
  },
];

export const templatesOf = (place: Place): Template[] => (place === "tasks" ? TASKS : PIPELINES);
