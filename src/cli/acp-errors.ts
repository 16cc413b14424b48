/**
 * Errors of the commands of editors, as JSON-RPC errors of ACP.
 *
 * ACP-8  An error says what to change. `data.code` is the code of the server or of the client.
 */
import { RequestError } from "@agentclientprotocol/sdk";
import { DramatisClientError } from "../client/errors.ts";
import { DramatisError, errorText } from "../shared/errors.ts";
import { notDramatis, requestFailure } from "./failure.ts";

const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;
const AUTH_REQUIRED = -32000;
const RESOURCE_NOT_FOUND = -32002;

const CODES: Readonly<Record<string, number>> = {
  UNAUTHENTICATED: AUTH_REQUIRED,
  NOT_FOUND: RESOURCE_NOT_FOUND,
  INVALID_INPUT: INVALID_PARAMS,
  INVALID_JSON: INVALID_PARAMS,
  TOO_LARGE: INVALID_PARAMS,
  UNSUPPORTED: INVALID_PARAMS,
};

export function rpcError(code: string, text: string): RequestError {
  return new RequestError(CODES[code] ?? INTERNAL_ERROR, text, { code });
}

/** Converts any error to a JSON-RPC error (ACP-8). */
export function rpcErrorOf(error: unknown, url: string): RequestError {
  if (error instanceof RequestError) return error;
  if (error instanceof DramatisClientError) return rpcError(error.code, requestFailure(error, url));
  if (error instanceof DramatisError) return rpcError(error.code, error.message);
  // JSON of another server lacks the members that are read.
  if (error instanceof TypeError) return rpcError("HTTP", notDramatis(url, error.message));
  return rpcError("INTERNAL_ERROR", errorText(error));
}
