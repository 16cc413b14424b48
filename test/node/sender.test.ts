/** Senders without a principal: which addresses share a limit. */
import { expect, test } from "vitest";
import { networkOf, senderOf } from "../../src/http/base/sender.ts";

test.each([
  ["2001:db8:0:7::1", "2001:db8:0:7::/64"],
  ["2001:0DB8:0000:0007:ffff:ffff:ffff:ffff", "2001:db8:0:7::/64"],
  ["2001:db8:0:8::1", "2001:db8:0:8::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::", "fe80:0:0:0::/64"],
  ["1:2:3:4:5:6:7:8", "1:2:3:4::/64"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["192.0.2.7", "192.0.2.7"],
  ["", ""],
  [":", ":"],
  ["1::2::3", "1::2::3"],
  ["no:address]/", "no:address]/"],
])("LIMIT-4 the address %j counts as %j", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test("LIMIT-4 requests without an address share one limit", () => {
  const request = (headers: HeadersInit) => new Request("https://dramatis.test", { headers });
  expect(senderOf(request({}))).toEqual({ tenant: "", subject: "" });
  expect(senderOf(request({ "x-forwarded-for": "192.0.2.7" }))).toEqual({ tenant: "", subject: "" });
  expect(senderOf(request({ "cf-connecting-ip": "2001:db8::1" })).subject).toBe("2001:db8:0:0::/64");
});
