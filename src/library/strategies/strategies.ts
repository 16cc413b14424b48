/**
 * Strategies of thinking, ready to use or to copy: workflows over models, each with a tool that runs it. Their tasks name no model, so they ask the
 * default one of the deployment.
 *
 * @example
 * const app = dramatis({ libraries: [strategies.library, library] });
 * definePersona("guide", { identity: { systemPrompt: "You weigh questions." }, tools: { toolIds: ["strategies/debate"] } });
 */
import { defineLibrary } from "../define/define.ts";
import { chainOfVerification, chainOfVerificationTool } from "./chain-of-verification.ts";
import { debate, debateTool } from "./debate.ts";
import { research, researchTool } from "./research.ts";
import { treeOfThought, treeOfThoughtTool } from "./tree-of-thought.ts";

export {
  chainOfVerification,
  chainOfVerificationTool,
  debate,
  debateTool,
  research,
  researchTool,
  treeOfThought,
  treeOfThoughtTool,
};

export const library = defineLibrary("strategies", {
  tools: [debateTool, chainOfVerificationTool, treeOfThoughtTool, researchTool],
});
