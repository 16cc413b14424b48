/** The actor `Workspace` on Durable Objects. */
import { systemClock } from "../../ports/system.ts";
import { completeOperationAt, unknownHandle } from "../../protocol/complete-operation.ts";
import type { ConversationApi } from "../../protocol/conversation-api.ts";
import { readHandle } from "../../protocol/operation-handle.ts";
import type { WorkspaceApi } from "../../protocol/workspace.ts";
import { unwrap } from "../../shared/errors.ts";
import { DurableActor } from "../base/durable-actor.ts";
import { durableActor } from "../base/lookup/durable-actors.ts";
import { objectOf } from "../base/lookup/placement.ts";
import { type WorkspaceApplication, WorkspaceRuntime } from "./runtime.ts";
import { containerShell, type ShellContainerStub } from "./shell/container-shell.ts";
import { embeddedShell, type Shell } from "./shell/shell.ts";

/** Returns the shell in the containers of a namespace, or the embedded shell without one. */
export function shellOf(containers: DurableObjectNamespace | undefined): Shell {
  if (containers === undefined) return embeddedShell;
  // SAFETY: the class of the binding `SHELL` extends `Container`.
  return containerShell((workspace) => objectOf(containers, workspace) as unknown as ShellContainerStub);
}

export function createWorkspaceClass<Env extends Cloudflare.Env>(
  application: (env: Env) => WorkspaceApplication,
): new (
  ctx: DurableObjectState,
  env: Env,
) => DurableActor<Env> & WorkspaceApi {
  return class Workspace extends DurableActor<Env> implements WorkspaceApi {
    readonly #runtime = new WorkspaceRuntime({
      ...application(this.env),
      stores: this.platform,
      clock: systemClock,
      tenant: () => this.mailboxAddress?.tenant ?? "",
      id: () => this.mailboxAddress?.id ?? "",
      checkPlace: () => this.checkPlace(),
      arm: this.wakeups.add("command", () => this.#runtime.wake()).arm,
      operations: {
        report: async (handle, progress) =>
          unwrap(await (await this.#conversationOf(handle)).reportOperation(handle, progress)),
        complete: async (handle, outcome) => {
          await completeOperationAt(await this.#conversationOf(handle), handle, outcome);
        },
      },
    });

    #conversationOf(handle: string) {
      const read = readHandle(handle);
      if (read === null) throw unknownHandle();
      const { tenant, conversationId: id } = read.claim;
      return durableActor<ConversationApi>(this.env as object, { kind: "conversation", tenant, id });
    }

    protected override get mailboxKind() {
      return "workspace";
    }

    protected override checkStorage() {
      super.checkStorage();
      this.#runtime.checkStorage();
    }

    async perform(...request: Parameters<WorkspaceApi["perform"]>) {
      return this.#runtime.perform(...request);
    }

    async cancel(key: string) {
      return this.#runtime.cancel(key);
    }

    async view(...request: Parameters<WorkspaceApi["view"]>) {
      return this.#runtime.view(...request);
    }

    async commits(...request: Parameters<WorkspaceApi["commits"]>) {
      return this.#runtime.commits(...request);
    }

    async saved(...request: Parameters<WorkspaceApi["saved"]>) {
      return this.#runtime.saved(...request);
    }

    async restore(...request: Parameters<WorkspaceApi["restore"]>) {
      return this.#runtime.restore(...request);
    }

    async restoreFile(...request: Parameters<WorkspaceApi["restoreFile"]>) {
      return this.#runtime.restoreFile(...request);
    }

    async forget(callId: string) {
      return this.#runtime.forget(callId);
    }

    async remove() {
      return this.#runtime.remove();
    }
  };
}
