/** Entry `dramatis/patterns`: agents and workflows to use or to copy, templates of sub-agents, and skills. */

export * as team from "./library/agents/team.ts";
export { defineSubAgent, type SubAgentOptions } from "./library/define/define-sub-agent.ts";
export { defineSkill } from "./library/skills/skill.ts";
export * as strategies from "./library/strategies/strategies.ts";
