/** The options of servers outside of the runtime. A request fails if its server closes the idle connection at that moment. */
import type { ServerOptions } from "node:http";

/** Connections stay open longer than any pause of a scenario. */
export const OUTSIDE_SERVER: ServerOptions = { keepAliveTimeout: 600_000 };
