/** Asks before each attempt of a model call whether its project permits the call, and counts the tokens of the reply. */
import type { ModelGateway, ModelRequest } from "../../model/gateway.ts";
import type { ProviderId } from "../../model/profile.ts";
import type { ModelDelta } from "../../model/reply.ts";
import type { TokenUsage } from "../../model/usage.ts";
import type { ErrorData } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import { modelError } from "../errors/model-errors.ts";

/** The permission of a project's model calls. */
export interface CallAdmission {
  /** Counts a call. Returns the error of a call that must not begin. Never throws. */
  refusal(context: CallContext, provider: ProviderId): Promise<ErrorData | undefined>;
  /** Adds the usage of an ended call. Never throws. */
  spend(context: CallContext, usage: TokenUsage): Promise<void>;
}

/** Wraps a gateway in the permission of projects (SETTING-1). */
export function admitGateway(gateway: ModelGateway, admission: CallAdmission): ModelGateway {
  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelDelta, void> {
    const { context, profile } = request;
    const refusal = await admission.refusal(context, profile.provider);
    if (refusal !== undefined) {
      yield {
        type: "error",
        error: { ...modelError(profile.provider, "validation", refusal.message), refusal },
      };
      return;
    }
    let usage: TokenUsage | undefined;
    try {
      for await (const delta of gateway.stream(request, signal)) {
        if (delta.type === "usage") usage = delta.usage;
        yield delta;
      }
    } finally {
      if (usage !== undefined) await admission.spend(context, usage);
    }
  }
  return { ...gateway, stream };
}
