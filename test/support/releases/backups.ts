/** The export and the import of a conversation on a stage. */

import { ConversationBackup } from "../../../src/agents/conversation/data/backup.ts";
import { importedChain } from "../../../src/library/authoring/imported-chain.ts";
import { Registry } from "../../../src/library/registry/registry.ts";
import type { Life, Stage } from "./stage.ts";

/** `place`: the tenant and the id that an imported conversation gets. */
export function backupOf(
  { database, keyValue, clock, code }: Stage,
  { runtime, queries }: Life,
  place = { tenant: "acme", conversationId: "conv_01JH0000000000000000000000" },
): ConversationBackup {
  const registry = new Registry(code);
  const context: ConstructorParameters<typeof ConversationBackup>[0] = {
    ...{ database, keyValue, clock, runtime, queries, attachments: null },
    importedChain: (_tenant, chain, path) =>
      importedChain({ code, registry, mayReceiveKey: () => true, mayReach: () => true }, chain, path),
    owner: () => place,
    copies: { note: async () => undefined, publish: async () => undefined },
    listing: { announce: () => [], publish: async () => undefined },
  };
  return new ConversationBackup(context, { arm: async () => undefined, disarm: () => undefined });
}
