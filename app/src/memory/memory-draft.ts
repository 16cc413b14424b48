/**
 * The form of a memory: its texts, and the memory or the change that they mean. Pure.
 *
 * MEMVIEW-2  A change has only the members that the reader changed, and the version that the reader saw. An unchanged text is no
 *            change, even if the form shows only a part of the value.
 */

import type { MemoryChange, MemoryInput } from "../../../src/protocol/memory-requests.ts";
import type { Memory } from "../../../src/protocol/memory-schemas.ts";
import { isoOf, localInput } from "./local-time.ts";

/** The texts of the fields. */
export interface MemoryDraft {
  content: string;
  type: string;
  significance: string;
  validFrom: string;
  validTo: string;
  /** New memories only. */
  userId: string;
  /** New memories only. */
  key: string;
}

export type DraftField = keyof MemoryDraft;

/** The problems of fields. */
export type DraftErrors = Partial<Record<DraftField, string>>;

export const EMPTY_DRAFT: MemoryDraft = {
  content: "",
  type: "",
  significance: "",
  validFrom: "",
  validTo: "",
  userId: "",
  key: "",
};

/** Returns the texts of a memory. */
export function draftOf(memory: Memory): MemoryDraft {
  const { content, type, significance, validFrom, validTo, subject, key } = memory;
  return {
    content,
    type,
    significance: String(significance),
    validFrom: localInput(validFrom),
    validTo: validTo === undefined ? "" : localInput(validTo),
    userId: subject.userId ?? "",
    key: key ?? "",
  };
}

/** Returns the errors of the texts. A member that a new memory lacks gets its default. An existing member cannot be emptied. */
export function errorsOf(draft: MemoryDraft, { isNew }: { isNew: boolean }): DraftErrors {
  const { content, type, significance, validFrom, validTo } = draft;
  const number = significanceOf(significance);
  const from = isoOf(validFrom);
  const to = isoOf(validTo);
  const isBackward = from !== undefined && to !== undefined && to < from;
  return {
    ...(content.trim() === "" ? { content: "Enter what to remember." } : {}),
    ...(!isNew && type.trim() === "" ? { type: "Enter a type." } : {}),
    ...((significance.trim() !== "" || !isNew) && number === undefined
      ? { significance: "Enter a number from 0 to 1." }
      : {}),
    ...((validFrom !== "" || !isNew) && from === undefined ? { validFrom: "Enter a date and a time." } : {}),
    ...(validTo !== "" && to === undefined ? { validTo: "Enter a date and a time." } : {}),
    ...(isBackward ? { validTo: "Enter a time after the beginning." } : {}),
  };
}

/** Returns the memory that the texts mean. They are free of errors. */
export function inputOf(draft: MemoryDraft): MemoryInput {
  const { content, type, significance, validFrom, validTo, userId, key } = trimmed(draft);
  const number = significanceOf(significance);
  const from = isoOf(validFrom);
  const to = isoOf(validTo);
  return {
    content,
    ...(type === "" ? {} : { type }),
    ...(number === undefined ? {} : { significance: number }),
    ...(from === undefined ? {} : { validFrom: from }),
    ...(to === undefined ? {} : { validTo: to }),
    ...(userId === "" ? {} : { subject: { userId } }),
    ...(key === "" ? {} : { key }),
  };
}

/** Returns the change of `memory` that the texts mean; `undefined` if they equal the memory. They are free of errors. */
export function changeOf(memory: Memory, draft: MemoryDraft): MemoryChange | undefined {
  const before = draftOf(memory);
  const isChanged = (field: DraftField) => draft[field] !== before[field];
  const { type, significance, validFrom, validTo } = trimmed(draft);
  const number = significanceOf(significance);
  const from = isoOf(validFrom);
  const change: MemoryChange = {
    ...(isChanged("content") ? { content: draft.content } : {}),
    ...(isChanged("type") && type !== "" ? { type } : {}),
    ...(isChanged("significance") && number !== undefined ? { significance: number } : {}),
    ...(isChanged("validFrom") && from !== undefined ? { validFrom: from } : {}),
    ...(isChanged("validTo") ? { validTo: isoOf(validTo) ?? null } : {}),
  };
  return Object.keys(change).length === 0 ? undefined : { ...change, ifVersion: memory.version };
}

/** Returns the draft with the texts of a newer version in the fields that the reader left as they were. */
export function rebased(draft: MemoryDraft, old: Memory, newer: Memory): MemoryDraft {
  const before = draftOf(old);
  const after = draftOf(newer);
  const mine = (field: DraftField) => (draft[field] === before[field] ? after[field] : draft[field]);
  return {
    content: mine("content"),
    type: mine("type"),
    significance: mine("significance"),
    validFrom: mine("validFrom"),
    validTo: mine("validTo"),
    userId: mine("userId"),
    key: mine("key"),
  };
}

function significanceOf(text: string): number | undefined {
  const number = text.trim() === "" ? Number.NaN : Number(text.trim().replace(",", "."));
  return number >= 0 && number <= 1 ? number : undefined;
}

function trimmed(draft: MemoryDraft): MemoryDraft {
  const { type, significance, userId, key } = draft;
  return {
    ...draft,
    type: type.trim(),
    significance: significance.trim(),
    userId: userId.trim(),
    key: key.trim(),
  };
}
