/** The package `dramatis`: the runtime of an application, and the builders of its agents, tools and workflows. */

export { dramatis } from "./dramatis.ts";
export * from "./portable.ts";
