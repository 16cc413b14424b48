/**
 * A team of five agents, ready to use or to copy: a manager, and the colleagues that it asks.
 *
 * @example
 * const app = dramatis({ libraries: [team.library], agents: team.agents });
 */
import { defineLibrary } from "../define/define.ts";
import { architect, askArchitect } from "./architect.ts";
import { askDeveloper, developer } from "./developer.ts";
import { manager } from "./manager.ts";
import { askResearcher, researcher } from "./researcher.ts";
import { askReviewer, reviewer } from "./reviewer.ts";

export {
  architect,
  askArchitect,
  askDeveloper,
  askResearcher,
  askReviewer,
  developer,
  manager,
  researcher,
  reviewer,
};

export const library = defineLibrary("team", {
  personas: [manager, architect, developer, reviewer, researcher],
  tools: [askArchitect, askDeveloper, askReviewer, askResearcher],
});

export const agents = library.personas.map(({ id }) => ({ id, persona: `team/${id}` }));
