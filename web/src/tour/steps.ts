/** A page of the tour. */
export interface Step {
  title: string;
  text: string;
  /** The page that it is about. */
  to: string;
}

/** The five steps: on documents of the demo, if it is there. */
export function stepsOf(hasDemo: boolean): Step[] {
  return [
    {
      title: "Overview",
      text: "Problems come first, each with its fix and a link. Below are rates, backlog and dead letters of all flows.",
      to: "/",
    },
    {
      title: "Topology",
      text: "Streams, sources, tasks, sinks and pipelines as a graph, with live rates on the edges. Click a node to open its page.",
      to: "/topology",
    },
    {
      title: "Dead letters",
      text: hasDemo
        ? "An event that can't be processed is kept with the reason. Ten orders of the demo have an amount such as '12,50': select one, edit it and replay it."
        : "An event that can't be processed is kept with the reason. Open a pipeline and choose Dead letters to edit and replay its events.",
      to: hasDemo ? "/pipelines/demo_orders?tab=letters" : "/pipelines",
    },
    {
      title: "Streams",
      text: hasDemo
        ? "A stream stores events for any number of readers. These clicks arrive four times per second; send one of your own under Produce."
        : "A stream stores events for any number of readers. The page of a stream has a live tail, its readers and a form to send events.",
      to: hasDemo ? "/streams/demo_clicks?tab=live" : "/streams",
    },
    {
      title: "Build a pipeline",
      text: "Choose a template, change it on the canvas or as YAML, test it on sample events and save it. It starts right away.",
      to: "/pipelines/new",
    },
  ];
}
