/** An application with the tools, prompts and resources that the conformance suite of MCP expects, and an agent with a tool. */
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ContentBlock,
  completable,
  createRequestStateCodec,
  fromJsonSchema,
  type InputRequests,
  inputRequired,
  inputResponse,
  type McpServer,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { dramatis } from "../../../src/dramatis.ts";
import { defineAgent, defineTool } from "../../../src/index.ts";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const states = createRequestStateCodec<{ round: number }>({ key: "a secret of the conformance suite only" });

type Handler = (context: ServerContext) => Promise<CallToolResult | ReturnType<typeof inputRequired>>;

const text = (content: string): ContentBlock => ({ type: "text", text: content });
const image: ContentBlock = { type: "image", data: PIXEL, mimeType: "image/png" };
const embedded = (uri: string, mimeType: string, content: string): ContentBlock => ({
  type: "resource",
  resource: { uri, mimeType, text: content },
});
const says = (...content: ContentBlock[]): CallToolResult => ({ content });

/** Asks for a text of this name. */
const asks = (name: string) =>
  inputRequired.elicit({
    message: `Your ${name}?`,
    requestedSchema: { type: "object", properties: { [name]: { type: "string" } }, required: [name] },
  });
const samples = inputRequired.createMessage({
  messages: [{ role: "user", content: { type: "text", text: "What is the capital of France?" } }],
  maxTokens: 100,
});

/** Reports whether the client has answered a request. */
function answered({ mcpReq }: ServerContext, name: string): boolean {
  const response = inputResponse(mcpReq.inputResponses, name);
  if (response.kind !== "elicit") return response.kind !== "missing";
  return response.action === "accept" && typeof Object(response.content).name !== "number";
}

/** Returns a tool that is done when the client has answered all requests. */
const needs =
  (requests: InputRequests, isStateful = false): Handler =>
  async (context) => {
    if (Object.keys(requests).every((name) => answered(context, name))) {
      const state = context.mcpReq.requestState();
      return says(text(state === undefined ? "Done." : "state-ok"));
    }
    const requestState = isStateful ? { requestState: await states.mint({ round: 1 }) } : {};
    return inputRequired({ inputRequests: requests, ...requestState });
  };

const TOOLS: Record<string, Handler> = {
  test_simple_text: async () => says(text("This is a simple text response for testing.")),
  test_image_content: async () => says(image),
  test_audio_content: async () => says({ type: "audio", data: SOUND, mimeType: "audio/wav" }),
  test_embedded_resource: async () =>
    says(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
  test_multiple_content_types: async () =>
    says(
      text("Multiple content types test:"),
      image,
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
  test_error_handling: async () => {
    throw new Error("This tool intentionally returns an error for testing");
  },
  test_tool_with_logging: async ({ mcpReq }) => {
    for (const data of ["started", "processing data", "completed"])
      await mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });
    return says(text("Logged."));
  },
  test_tool_with_progress: async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100])
      await mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken, progress, total: 100 },
      });
    return says(text("Done."));
  },
  test_logging_tool: async ({ mcpReq }) => {
    await mcpReq.log("info", "This is sent only if the request names a level.");
    return says(text("Logged."));
  },
  test_streaming_elicitation: async () => says(text("No request is on the stream.")),
  test_missing_capability: needs({ sample: samples }),
  test_input_required_result_elicitation: needs({ user_name: asks("name") }),
  test_input_required_result_sampling: needs({ capital_question: samples }),
  test_input_required_result_list_roots: needs({ client_roots: inputRequired.listRoots() }),
  test_input_required_result_request_state: needs({ confirm: asks("ok") }, true),
  test_input_required_result_tampered_state: needs({ confirm: asks("ok") }, true),
  test_input_required_result_multiple_inputs: needs(
    { user_name: asks("name"), greeting: samples, client_roots: inputRequired.listRoots() },
    true,
  ),
  test_input_required_result_multi_round: async (context) => {
    const { round = 0 } = context.mcpReq.requestState<{ round: number }>() ?? {};
    if (round === 2) return says(text("Done."));
    const name = `step${round + 1}`;
    return inputRequired({
      inputRequests: { [name]: asks("name") },
      requestState: await states.mint({ round: round + 1 }),
    });
  },
  test_input_required_result_capabilities: async (context) => {
    if (context.mcpReq.inputResponses !== undefined) return says(text("Done."));
    const { elicitation, sampling } = Object(context.mcpReq.envelope)[CLIENT_CAPABILITIES_META_KEY];
    return inputRequired({
      inputRequests: {
        ...(elicitation === undefined ? {} : { user_name: asks("name") }),
        ...(sampling === undefined ? {} : { greeting: samples }),
      },
    });
  },
};

const SCHEMA_2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
} as const;

function addTools(server: McpServer): void {
  for (const [name, handle] of Object.entries(TOOLS))
    server.registerTool(name, { description: name, inputSchema: z.object({}) }, (_, context) =>
      handle(context),
    );
  const header = { type: "string", "x-mcp-header": "Region" };
  server.registerTool(
    "test_x_mcp_header",
    {
      description: "Has an argument that a header repeats.",
      inputSchema: fromJsonSchema({ type: "object", properties: { region: header } }),
    },
    async () => says(text("Done.")),
  );
  server.registerTool(
    "json_schema_2020_12_tool",
    { description: "Has a schema.", inputSchema: fromJsonSchema(SCHEMA_2020) },
    async () => says(text("Done.")),
  );
}

function addPrompts(server: McpServer): void {
  const user = (...content: ContentBlock[]) => ({
    messages: content.map((block) => ({ role: "user" as const, content: block })),
  });
  const argument = (...values: string[]) =>
    completable(z.string(), (value) => values.filter((other) => other.startsWith(value)));
  server.registerPrompt("test_simple_prompt", { description: "Is simple." }, async () =>
    user(text("This is a simple prompt for testing.")),
  );
  server.registerPrompt(
    "test_prompt_with_arguments",
    {
      description: "Has arguments.",
      argsSchema: z.object({ arg1: argument("paris", "park"), arg2: argument() }),
    },
    async ({ arg1, arg2 }) => user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "Has a resource.", argsSchema: z.object({ resourceUri: z.string() }) },
    async ({ resourceUri }) =>
      user(embedded(resourceUri, "text/plain", "Embedded resource content for testing."), text("Read it.")),
  );
  server.registerPrompt("test_prompt_with_image", { description: "Has an image." }, async () =>
    user(image, text("See it.")),
  );
  server.registerPrompt(
    "test_input_required_result_prompt",
    { description: "Asks.", argsSchema: z.object({}) },
    async (_, context) =>
      answered(context, "user_context")
        ? user(text("Done."))
        : inputRequired({ inputRequests: { user_context: asks("context") } }),
  );
}

function addResources(server: McpServer): void {
  const plain = { mimeType: "text/plain" };
  for (const name of ["static-text", "watched-resource"])
    server.registerResource(name, `test://${name}`, plain, async ({ href: uri }) => ({
      contents: [{ uri, ...plain, text: "This is the content of a resource." }],
    }));
  server.registerResource(
    "static-binary",
    "test://static-binary",
    { mimeType: "image/png" },
    async ({ href: uri }) => ({ contents: [{ uri, mimeType: "image/png", blob: PIXEL }] }),
  );
  server.registerResource(
    "template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    { mimeType: "application/json" },
    async ({ href: uri }, { id }) => ({
      contents: [{ uri, mimeType: "application/json", text: JSON.stringify({ id, templateTest: true }) }],
    }),
  );
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));
}

const reserve = defineTool({
  name: "reserve",
  description: "Reserves a table.",
  input: z.object({ url: z.string() }),
  effect: "idempotent",
  async execute({ url }, { operationId, signal }) {
    const headers = { "idempotency-key": operationId };
    return (await fetch(url, { method: "POST", headers, body: "{}", signal })).text();
  },
});

const app = dramatis({
  agents: [defineAgent({ id: "clerk", instructions: "You are a clerk.", tools: [reserve] })],
  mcp: {
    server: {
      capabilities: {
        logging: {},
        resources: { subscribe: true, listChanged: false },
        prompts: { listChanged: false },
      },
      requestState: { verify: states.verify },
    },
    extend: (server) => {
      addTools(server);
      addPrompts(server);
      addResources(server);
    },
  },
});

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
export default app.handler;
