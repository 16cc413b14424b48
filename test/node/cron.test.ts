/** Cron expressions and their next times in zones. */
import { describe, expect, test } from "vitest";
import { nextTime, parseCron } from "../../src/agents/trigger/core/cron.ts";
import { parseCreate } from "../../src/agents/trigger/inbound/requests.ts";

/** The next times of an expression, as ISO texts. */
function timesOf(expression: string, zone: string, after: string, count: number): string[] {
  const cron = parseCron(expression, zone);
  const times: number[] = [];
  while (times.length < count) {
    const next = nextTime(cron, times.at(-1) ?? Date.parse(after));
    if (next === undefined) break;
    times.push(next);
  }
  return times.map((time) => new Date(time).toISOString());
}

describe("G13 CRON-1 an expression", () => {
  // The first of May 2026 is a Friday.
  test.each<[string, string]>([
    ["5 4 * * *", "2026-05-01T04:05:00.000Z"],
    ["*/20 1-3,22 * * *", "2026-05-01T01:00:00.000Z"],
    ["10-30/10,3 0 1,15 jun,DEC *", "2026-06-01T00:03:00.000Z"],
    ["0 0 * * mon-wed", "2026-05-04T00:00:00.000Z"],
    ["0 0 * * sat-sun", "2026-05-02T00:00:00.000Z"],
    ["0 0 * * 7", "2026-05-03T00:00:00.000Z"],
    ["0 0 20 5 mon", "2026-05-04T00:00:00.000Z"],
    ["0 0 L * *", "2026-05-31T00:00:00.000Z"],
    ["0 0 * * 5#2", "2026-05-08T00:00:00.000Z"],
    ["@daily", "2026-05-02T00:00:00.000Z"],
    ["@hourly", "2026-05-01T01:00:00.000Z"],
    ["@midnight", "2026-05-02T00:00:00.000Z"],
  ])("%s", (text, expected) => {
    expect(timesOf(text, "UTC", "2026-05-01T00:00:30.500Z", 1)).toEqual([expected]);
  });

  test.each([
    ["", "five"],
    ["* * * *", "five"],
    ["* * * * * *", "five"],
    ["2099-01-01T00:00:00", "five"],
    ["@reboot", "@reboot"],
    ["@dayly", "@daily"],
    ["60 * * * *", "minute"],
    ["5x * * * *", "5x"],
    ["* 24 * * *", "hour"],
    ["* * * 13 *", "month"],
    ["* * * foo *", "foo"],
    ["* * * * 8", "dayOfWeek"],
    ["*/0 * * * *", "step"],
    ["30-10 * * * *", "30-10"],
    ["1,,2 * * * *", "minute"],
  ])("refuses %j, and names the fault", (text, fault) => {
    expect(() => parseCron(text)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
    expect(() => parseCron(text)).toThrow(fault);
  });

  test("CRON-3 has no time if no day matches", () => {
    expect(timesOf("0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z", 1)).toEqual([]);
    expect(timesOf("0 0 31 apr,jun *", "UTC", "2026-01-01T00:00:00Z", 1)).toEqual([]);
    expect(timesOf("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1)).toEqual(["2104-02-29T00:00:00.000Z"]);
  });

  test.each([
    ["0 0 30 2 *", false],
    ["0 0 31 apr,jun,sep,nov *", false],
    ["0 0 29 2 *", true],
    ["0 0 29 2 1", true],
    ["0 0 29 2 *", true, "2096-03-01T00:00:00Z"],
  ])("CRON-3 a trigger at %s is accepted: %s", (cron, isAccepted, now = "2026-01-01T00:00:00Z") => {
    const ada = { subject: "ada", tenant: "acme", roles: ["admin"] as const };
    const starts = { workflow: "lib/flow" };
    const create = () =>
      parseCreate(
        { ...ada, roles: [...ada.roles] },
        { id: `trig_${"0".repeat(26)}`, when: { cron }, starts },
        Date.parse(now),
      );
    if (isAccepted) expect(create().nextAt).toBeGreaterThan(Date.parse(now));
    else
      expect(create).toThrow(
        `The cron expression "${cron}" has no date in the next ten years. Check the day and the month.`,
      );
  });

  test("refuses unknown zones", () => {
    for (const name of ["Europe/Atlantis", "+02:00", ""])
      expect(() => parseCron("* * * * *", name)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
  });
});

describe("G13 CRON-2 a change of the clock", () => {
  test("02:30 in Berlin fires once at both changes", () => {
    expect(timesOf("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3)).toEqual([
      "2026-03-28T01:30:00.000Z",
      "2026-03-29T01:00:00.000Z",
      "2026-03-30T00:30:00.000Z",
    ]);
    expect(timesOf("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30:00.000Z",
      "2026-10-26T01:30:00.000Z",
    ]);
  });

  test("every half an hour covers the repeated hour, and skips the missing hour", () => {
    expect(timesOf("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 4)).toEqual([
      "2026-10-25T00:30:00.000Z",
      "2026-10-25T01:00:00.000Z",
      "2026-10-25T01:30:00.000Z",
      "2026-10-25T02:00:00.000Z",
    ]);
    expect(timesOf("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3)).toEqual([
      "2026-03-29T00:30:00.000Z",
      "2026-03-29T01:00:00.000Z",
      "2026-03-29T01:30:00.000Z",
    ]);
  });

  test("half an hour in Lord Howe, midnight in São Paulo", () => {
    expect(timesOf("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 1)).toEqual([
      "2026-10-03T15:30:00.000Z",
    ]);
    expect(timesOf("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", 2)).toEqual([
      "2018-11-04T03:00:00.000Z",
      "2018-11-05T02:00:00.000Z",
    ]);
  });
});
