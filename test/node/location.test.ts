/** Where agents and conversations live: their ids, and the rules for new ids. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mentionedIn } from "../../src/agents/conversation/core/planning/address.ts";
import {
  completionId,
  itemId,
  parseCallId,
  parseResponseId,
  responseId,
  toolCallId,
} from "../../src/compat/openai/ids.ts";
import { calledConversationId } from "../../src/protocol/ids.ts";
import {
  checkedPolicy,
  checkNew,
  checkTogether,
  type LocationPolicy,
  newAgentId,
  newConversationIdOf,
  separation,
} from "../../src/protocol/location-policy.ts";
import { claimText, readHandle, toBase64Url } from "../../src/protocol/operation-handle.ts";
import { isAgentId, isConversationId, isTenantName } from "../../src/shared/identifiers.ts";
import { inJurisdiction, JURISDICTIONS, jurisdictionOf, locationOf } from "../../src/shared/location.ts";

const PLAIN = "conv_01JD0000000000000000000000";
const OPERATION = "op_01JD0000000000000000000001";
const places = fc.option(fc.constantFrom(...JURISDICTIONS), { nil: undefined });
const agentNames = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,63}$/);

describe("G14 LOCATION-1 an id", () => {
  test("names its jurisdiction, if it has any", () => {
    fc.assert(
      fc.property(fc.oneof(agentNames, fc.constant(PLAIN)), places, places, (name, place, other) => {
        const id = inJurisdiction(name, place);
        expect(jurisdictionOf(id)).toBe(place);
        expect(inJurisdiction(inJurisdiction(id, other), place)).toBe(id);
        expect(inJurisdiction(id, undefined)).toBe(name);
        expect(locationOf(id)).toEqual(place === undefined ? {} : { jurisdiction: place });
        expect(name === PLAIN ? isConversationId(id) : isAgentId(id)).toBe(true);
      }),
    );
  });

  test("without a jurisdiction equals an id of releases without jurisdictions", () => {
    for (const id of ["eu", "guide", "guide-eu", "us", "fedramp-high", PLAIN, `agent-${"x".repeat(58)}`]) {
      expect(locationOf(id)).toEqual({});
      expect(isAgentId(id) || isConversationId(id)).toBe(true);
    }
    expect(["_eu", "guide_", "guide_mars", "guide_EU", "guide_eu_us", "gui_de_eu"].filter(isAgentId)).toEqual(
      [],
    );
    expect([`${PLAIN}_`, `${PLAIN}_mars`, `${PLAIN}-eu`, "conv_eu"].filter(isConversationId)).toEqual([]);
    expect(["acme_eu", "_eu"].filter(isTenantName)).toEqual([]);
  });

  test("can be mentioned", () => {
    expect(mentionedIn("@guide_eu, ask @clerk and @Clerk_US-East or @clerk_us.")).toEqual([
      "guide_eu",
      "clerk",
      "clerk_us",
    ]);
  });

  test.each([undefined, ...JURISDICTIONS])(
    "is preserved by handles and by the ids of other protocols (%s)",
    (place) => {
      const conversationId = inJurisdiction(PLAIN, place);
      const call = toolCallId(conversationId, OPERATION);
      expect(parseCallId(call)).toEqual({ conversationId, operationId: OPERATION });
      for (const finalOnly of [false, true]) {
        const address = { conversationId, turnId: "turn_01JD0000000000000000000002", index: 12, finalOnly };
        expect(parseResponseId(responseId(address))).toEqual(address);
        for (const id of [call, responseId(address), completionId(address), itemId("fc", address, 3)])
          expect(id).toMatch(/^[A-Za-z0-9_-]+$/);
      }
      const claim = { tenant: "acme", conversationId, operationId: OPERATION, expiresAt: 1 };
      expect(readHandle(`${claimText(claim)}.${toBase64Url(new Uint8Array(32))}`)?.claim).toEqual(claim);
    },
  );
});

describe("G14 LOCATION-2 a new conversation", () => {
  test("lives in the place of its request, or else of its agent, or else of its tenant", () => {
    fc.assert(
      fc.property(places, places, places, (asked, agents, tenants) => {
        const policy: LocationPolicy = tenants === undefined ? {} : { jurisdiction: tenants };
        const request = asked === undefined ? {} : { jurisdiction: asked };
        const id = newConversationIdOf(PLAIN, inJurisdiction("guide", agents), request, policy);
        expect(id).toBe(inJurisdiction(PLAIN, asked ?? agents ?? tenants));
      }),
    );
  });

  test("of a call lives in its caller's, and no two attempts share an id", () => {
    for (const place of [undefined, ...JURISDICTIONS]) {
      const ids = [1, 2, 3].map((attempt) => calledConversationId(OPERATION, attempt, place));
      expect(ids.map(jurisdictionOf)).toEqual([place, place, place]);
      expect(new Set(ids).size).toBe(3);
      expect(ids.every(isConversationId)).toBe(true);
    }
  });
});

describe("G14 LOCATION-3 a strict application", () => {
  const strict: LocationPolicy = { jurisdiction: "eu", strict: true };

  test("keeps new objects in its jurisdiction, and any other application lets the request decide", () => {
    expect(() => checkNew("guide", strict, "/id")).toThrow(/jurisdiction "eu"/);
    expect(() => checkNew("guide_us", strict, "/id")).toThrow(/jurisdiction "eu"/);
    checkNew("guide_eu", strict, "/id");
    for (const policy of [{}, { strict: true }, { jurisdiction: "eu" }] as const)
      checkNew("guide_us", policy, "/id");
  });

  test("separates agents and conversations of two jurisdictions, unlike other applications", () => {
    const conversation = inJurisdiction(PLAIN, "eu");
    for (const policy of [strict, { strict: true }]) {
      expect(separation(conversation, "guide_eu", policy)).toBeNull();
      expect(separation(PLAIN, "guide", policy)).toBeNull();
      expect(separation(conversation, "guide", policy)).toBe(
        'The agent "guide" has no jurisdiction, and the conversation is in the jurisdiction "eu".',
      );
      expect(() => checkTogether(PLAIN, "guide_us", policy)).toThrow(/is in the jurisdiction "us"/);
    }
    expect(separation(conversation, "guide_us", { jurisdiction: "eu" })).toBeNull();
  });

  test("with an unknown value in its policy gets an error with the known values", () => {
    // SAFETY: what an application without types might return.
    const mistaken = { jurisdiction: "europe" } as unknown as LocationPolicy;
    expect(() => checkedPolicy(mistaken)).toThrow(/"eu"\|"us"\|"fedramp"\|"fedramp-high"/);
    expect(checkedPolicy(undefined)).toEqual({});
  });
});

describe("G14 LOCATION-4 a new agent", () => {
  const random = () => "agent-x";

  test("has the id that was chosen for it, or a random one in its jurisdiction", () => {
    expect(newAgentId({ id: "guide" }, {}, random)).toBe("guide");
    expect(newAgentId({ id: "guide_eu" }, {}, random)).toBe("guide_eu");
    expect(newAgentId({ id: "guide_eu", jurisdiction: "eu" }, {}, random)).toBe("guide_eu");
    expect(newAgentId({ id: "guide_us" }, { jurisdiction: "eu" }, random)).toBe("guide_us");
    expect(newAgentId({}, {}, random)).toBe("agent-x");
    expect(newAgentId({ jurisdiction: "us" }, { jurisdiction: "eu" }, random)).toBe("agent-x_us");
    expect(newAgentId({}, { jurisdiction: "eu" }, random)).toBe("agent-x_eu");
  });

  test("is refused under an id that names another jurisdiction than its request or its tenant", () => {
    const message = 'Must be "guide_eu" in the jurisdiction "eu".';
    const refusal = expect.objectContaining({
      code: "INVALID_INPUT",
      options: { errors: [{ path: "/id", message }] },
    });
    for (const [request, policy] of [
      [{ id: "guide", jurisdiction: "eu" }, {}],
      [{ id: "guide_us", jurisdiction: "eu" }, {}],
      [{ id: "guide" }, { jurisdiction: "eu" }],
    ] as const)
      expect(() => newAgentId(request, policy, random)).toThrow(refusal);
  });
});
