/** Templates of sub-agents, in code. */
import type { NetworkPolicy } from "../../protocol/sub-agent.ts";
import { defined } from "../../shared/defined.ts";
import type { AgentInCode } from "../tasks/built.ts";
import { type AgentToolOptions, defineTool, type Tool } from "./define.ts";

/** The argument of `defineSubAgent`. */
export interface SubAgentOptions extends Pick<AgentToolOptions, "async" | "approval" | "effect" | "retry"> {
  /** The agent, in code or by id, that works as the sub-agent: its persona, memory and model. */
  agent: AgentInCode | string;
  /** Explains to the model when to spawn a sub-agent. */
  description: string;
  /** The names of the agent's tools that the sub-agent may use. */
  tools: string[];
  /**
   * The hosts that these tools may reach, as `host` or `host:port`. Default: `none`. The sub-agent then has only tools in code with `hosts: []`
   * and tools that agents answer.
   */
  network?: NetworkPolicy;
  /** Time limit of a sub-agent, in milliseconds; five minutes when absent. */
  timeoutMs?: number;
  /** Maximum number of concurrent sub-agents of this template in a conversation: 1 to 32; 3 when absent. */
  quota?: number;
}

/**
 * Defines the template of a sub-agent: the tool `agent_spawn_<template>` with the input `goal`. Throws `INVALID_INPUT`.
 *
 * @example
 * const reader = defineSubAgent("reader", {
 *   agent: "researcher",
 *   description: "Reads pages of the manual for one question.",
 *   tools: ["read_page"],
 *   network: ["manual.example"],
 * });
 */
export function defineSubAgent(
  template: string,
  { agent, tools, network, quota, ...options }: SubAgentOptions,
): Tool {
  return defineTool({
    ...options,
    name: `agent_spawn_${template}`,
    target: { agent, template: { name: template, tools, ...defined({ network, quota }) } },
  });
}
