/** Entry `dramatis/patterns`: agents and workflows to use or to copy, and templates of sub-agents. */

export * as team from "./library/agents/team.ts";
export { defineSubAgent, type SubAgentOptions } from "./library/define/define-sub-agent.ts";
export * as strategies from "./library/strategies/strategies.ts";
