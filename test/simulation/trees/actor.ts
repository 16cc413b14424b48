/** The actor of a conversation in a tree of calls. */
import type { ConversationState } from "../../../src/agents/conversation/core/state.ts";
import { ConversationActor, type ConversationLife } from "../../../src/testing/world/actors.ts";
import { TENANT, type TreeWorld } from "./world.ts";

/** One life of an actor. */
export type Life = ConversationLife;

export class TreeActor extends ConversationActor {
  /** It has stopped a call, or waited too long for it. */
  hasGivenUp = false;

  constructor(world: TreeWorld, id: string) {
    super(world, TENANT, id);
  }

  /** The state in memory; `null` for an actor that is dead, or was not created. */
  get state(): ConversationState | null {
    const { life } = this;
    return life?.runtime.exists ? life.runtime.state : null;
  }
}
