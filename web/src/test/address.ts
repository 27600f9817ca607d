// Whatever talks to the server takes its address from the page, and there is none here.
globalThis.location ??= { origin: "http://localhost" } as Location;
