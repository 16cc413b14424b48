import type { ModelGateway } from "../../model/gateway.ts";
import { LogicalCall } from "./logical-call.ts";
import type { ResilientDelta, ResilientGatewayOptions, ResilientRequest } from "./resilient-request.ts";

export interface ResilientGateway {
  /** Never throws; a request that failed ends with one `error` delta before its outcome. */
  stream(request: ResilientRequest, signal: AbortSignal): AsyncIterable<ResilientDelta>;
}

/**
 * `gateway` makes one attempt a call, as `createModelGateway` does.
 * @example createResilientGateway(createModelGateway(ports), { clock, ids, guards })
 */
export function createResilientGateway(
  gateway: ModelGateway,
  options: ResilientGatewayOptions,
): ResilientGateway {
  return { stream: (request, signal) => new LogicalCall(gateway, options, request, signal).run() };
}
