/** The built-in gateways of a Worker's bindings. They check the trusted hosts at each call, so that an invalid host fails it with the reason. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { createEmbeddingGateway } from "./adapters/gateway/embeddings.ts";
import { createModelGateway, secretsOf } from "./adapters/gateway/gateway.ts";
import type { TrustedHost } from "./adapters/gateway/trusted-hosts.ts";
import type { EmbeddingGateway } from "./model/embedding.ts";
import type { ModelGateway } from "./model/gateway.ts";
import { systemClock } from "./ports/system.ts";
import { defined } from "./shared/defined.ts";

type Bindings = Parameters<typeof secretsOf>[0] & { AI?: Ai };

/** Returns the hosts that may receive keys. */
type Trusted<Env> = (env: Env) => readonly TrustedHost[];

/** Turns texts into vectors. */
export function builtInEmbeddings<Env extends Bindings>(env: Env, trusted: Trusted<Env>): EmbeddingGateway {
  return {
    embed: (request, signal) =>
      createEmbeddingGateway({ ...gatewayPorts(env), trustedHosts: trusted(env) }).embed(request, signal),
  };
}

/** Calls models. `languageModels` returns models of the AI SDK. */
export function builtInGateway<Env extends Bindings>(
  env: Env,
  languageModels: ((modelId: string, env: Env) => LanguageModelV4 | undefined) | undefined,
  trusted: Trusted<Env>,
): ModelGateway {
  const ports = {
    ...gatewayPorts(env),
    ...(languageModels && { languageModel: (modelId: string) => languageModels(modelId, env) }),
  };
  return {
    ...createModelGateway(ports),
    stream: (request, signal) =>
      createModelGateway({ ...ports, trustedHosts: trusted(env) }).stream(request, signal),
  };
}

function gatewayPorts(env: Bindings) {
  return {
    secret: secretsOf(env),
    fetch: (input: string, init: RequestInit) => fetch(input, init),
    clock: systemClock,
    ...defined({ ai: env.AI }),
  };
}
