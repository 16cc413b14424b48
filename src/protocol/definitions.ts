/**
 * Definitions that library authors write. A definition is data with an id, versioned by the hash of its content. A tool's
 * `execute` is code and belongs to the deployment.
 */
import type { ModelProfile } from "../model/profile.ts";
import type { Mapping } from "../shared/expressions/mapping.ts";
import type { DefinitionReference } from "../shared/identifiers.ts";
import type { JsonObject } from "../shared/json.ts";
import type { ApprovalNeed } from "./approval-schema.ts";
import type { Budget } from "./budget.ts";
import type { AgentMode, Pin, RetryPolicy, Skill, ToolEffect } from "./definition-parts.ts";
import type { MemoryScope } from "./memory.ts";
import type { RankingWeights } from "./memory-requests.ts";
import type { HANDOFFS } from "./participants.ts";
import type { PinnedWorkflow } from "./pinned-workflow.ts";
import type { SubAgentTemplate } from "./sub-agent.ts";
import type { PinnedTask } from "./task-definition.ts";

export type { AgentMode, Pin, RetryPolicy, Skill, ToolEffect } from "./definition-parts.ts";

/** The definition of an agent: its identity, memory and tools. Holds no state. */
export interface Persona {
  name?: string;
  description?: string;
  identity: {
    systemPrompt: string;
    /** Behavioural instructions, each a system instruction of its own after the prompt. */
    instructions?: string[];
    /** A model profile of a library; the default profile when absent. */
    modelProfileId?: DefinitionReference;
  };
  memory?: {
    /** Maximum number of past turns in the model's context; 20 when absent. */
    recentTurnsLimit?: number;
    /** Tokens of instructions, tools and history in a model call. The model profile may set a lower limit. */
    contextTokens?: number;
    /** The model profile that summarises a history which fills its budget; the persona's own when absent. */
    compactionProfileId?: DefinitionReference;
    /** The task or the workflow that makes the provider's request of each cycle; the platform when absent. */
    contextAssembly?: HookTarget;
    /** The task or the workflow that gets each completed turn. */
    memoryExtraction?: HookTarget;
    /**
     * The owner of the memories that a conversation sees. Setting it gives the agent memory. In JSON, any other
     * memory setting implies `agent`.
     */
    scope?: MemoryScope;
    /** Memories recalled for each turn. `false`: only the memory tools find memories. */
    recall?: false | RecallSettings;
    /** The tools `remember`, `recall`, `forget` and `history`. `false` removes them. */
    memoryTools?: false;
    /** Learns from each completed turn by a model, or by rules if the model is `offline`. Default: `false`. */
    extract?: boolean | { profileId: DefinitionReference };
    /** The IANA zone of the users, such as `Asia/Tokyo`. It defines the day that "yesterday" refers to. Default: UTC. */
    timeZone?: string;
    /** Ranking weights. An absent weight has its default. */
    ranking?: Partial<RankingWeights>;
    /** By type of memory: the action for memories that did not change for so many days. Default: keep all memories. */
    retention?: Record<string, { days: number; then: "archive" | "delete" }>;
    /** Consolidates old memories of these types, by a task, a workflow, or the platform. */
    consolidation?: Consolidation;
  };
  /** The knowledge that the model sees as an index, and reads with tools. */
  knowledge?: {
    /** The artifacts of the project: all, or only artifacts of these types. */
    artifacts: true | string[];
  };
  /** Instructions for certain tasks, inline or in libraries. The model sees their descriptions, and reads them with `read_skill`. */
  skills?: (Skill | DefinitionReference)[];
  tools?: {
    /** References, also `mcp:server/tool` and `mcp:server/*`. */
    toolIds?: DefinitionReference[];
    constraints?: {
      /** Model replies per turn before the agent must answer; 16 when absent. */
      maxMovesPerTurn?: number;
      /** The tools that the agent may call, by name or by a beginning with `*` at its end. All tools when absent. */
      allowedActions?: string[];
    };
  };
  /** The model profile that writes the titles of conversations. Without it a title is the beginning of the first message. */
  titles?: { modelProfileId: DefinitionReference };
  /** Limits of each conversation of the agent, over all its turns. */
  budget?: Budget;
  /** Example messages that pages offer to users. They are not sent to the model. */
  examples?: string[];
}

/** Another form of a reference to a persona: `libraryId` is `library/id`, or only the library, with a separate `id`. */
export interface LibraryIdReference {
  libraryId: string;
  id?: string;
  /** A version number as text. */
  version?: string;
}

/** A persona as callers give it: inline or by reference. */
export type PersonaSource = Persona | DefinitionReference | LibraryIdReference;

/** Memories recalled for each turn. */
export interface RecallSettings {
  /** Tokens of all of them; 1 500 when absent. */
  tokens?: number;
  /** Memories at most; 12 when absent. */
  limit?: number;
  /** The least relevance, from 0 to 1; a default of the platform when absent. */
  minRelevance?: number;
}

export interface Consolidation {
  /** The types that are joined; `["episode"]` when absent. */
  types?: string[];
  /** Hours between two runs; 24 when absent. */
  everyHours?: number;
  /** Memories of one subject that are worth it; 10 when absent. */
  minimum?: number;
  /** The platform's own when absent. */
  by?: HookTarget;
}

/** A tool as data, which a conversation pins. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: JsonObject;
  effect: ToolEffect;
  /** Time limit of one attempt, in milliseconds. */
  timeoutMs: number;
  /** Attempts of a call; one when absent. Only `pure` and `idempotent` tools have it. */
  retry?: RetryPolicy;
  /**
   * Hosts that the tool's code calls, as `host` or `host:port`. `[]`: no hosts. Absent: unknown. Sub-agents need it
   * (SPAWN-2).
   */
  hosts?: string[];
  /** Runs calls in the background: the model continues and gets the result later. Default: `false`. */
  async?: boolean;
  /** `always`, or a rule that names who may answer: a call runs after a person has approved it. Default: `never`. */
  approval?: ApprovalNeed;
  /** The code or the workflow that a call runs, or the agent that answers it; the tool's own code when absent. */
  target?: ToolTarget;
  /** The members of the target's input, as expressions over `input`; the target gets the model's input when absent. */
  inputMapping?: Mapping;
}

/** The target of a tool's calls: a task or the code of a deployed tool, a workflow, an agent, or an agent of another server. */
export type ToolTarget = TaskTarget | WorkflowTarget | AgentTarget | A2aTarget;

export interface TaskTarget {
  task: DefinitionReference;
}

/** A workflow. Each call starts a run. A conversation pins its version. */
export interface WorkflowTarget {
  workflow: DefinitionReference;
}

/** An agent of another server, which speaks A2A. */
export interface A2aTarget {
  /** The address of the agent. Its agent card is at `.well-known/agent-card.json` below it. */
  a2a: string;
}

export interface AgentTarget {
  agent: string;
  /** The mode of a call if the model chooses no mode. Default: the first of `modes`. */
  mode?: AgentMode;
  /** The modes that the model may choose from. Default: `["delegate", "loop_in"]`. With a single mode there is no choice. */
  modes?: AgentMode[];
  /**
   * The history that the agent receives when it joins. Default: `recent`. `custom`: the calling model writes it in
   * the member `handoff`.
   */
  handoff?: (typeof HANDOFFS)[number] | "custom";
  /** The agent works as a sub-agent: within these bounds, and always as a `delegate`. */
  template?: SubAgentTemplate;
  /** A delegate works on the caller's files. Absent: on a branch of its own, which begins at the caller's newest commit. */
  workspace?: "shared";
}

export type HookName = "contextAssembly" | "memoryExtraction";

/** The target of a hook: a task, the code of a deployed tool, or a workflow. Each attempt of a workflow starts a run. */
export type HookTarget = TaskTarget | WorkflowTarget;

/** A hook as a conversation pins it. Code is not versioned. */
export interface PinnedHook {
  library: string;
  id: string;
  effect: ToolEffect;
  timeoutMs: number;
  /** The steps of the task. Absent if the target is a function or a workflow. */
  task?: PinnedTask;
  /** The workflow with its dependencies. Absent if the hook is a task. */
  workflow?: PinnedWorkflow;
}

export type PinnedTool = Pin & {
  definition: ToolDefinition;
  /** The steps of the task. Absent if the tool runs code, or if an agent answers. */
  task?: PinnedTask;
};

/** The definitions that a conversation needs of its agent, resolved at its creation and kept as data. */
export interface VersionChain {
  persona: Pin & { definition: Persona };
  tools: PinnedTool[];
  /** Tools of MCP servers that could not be used when the conversation began, by their names, with the reasons. */
  withheld?: Record<string, string>;
  modelProfile: Pin & { definition: ModelProfile };
  /** The models that answer when the first cannot, in order. */
  fallbacks?: (Pin & { definition: ModelProfile })[];
  /** The model that summarises the history. Default: the first model. */
  compactionProfile?: Pin & { definition: ModelProfile };
  /** The model that writes the titles of conversations. Without it a title is the beginning of the first message. */
  titleProfile?: Pin & { definition: ModelProfile };
  contextAssembly?: PinnedHook;
  memoryExtraction?: PinnedHook;
  /** The skills that the persona names by reference, in the persona's order. Absent without references. */
  skills?: (Pin & { definition: Skill })[];
}
