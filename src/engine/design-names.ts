/** The names that `agent-conversation-core` v0.1 gives to types of the engine. */
import type { ProviderCallRecord } from "../model/call-record.ts";
import type { ConversationRecord, MessageRole } from "./records.ts";

export type ConversationId = string;
export type TurnId = string;
export type MessageId = string;
export type ModelId = string;
export type Role = MessageRole;
export type ProviderOperation = ProviderCallRecord["operation"];
export type Conversation = ConversationRecord;
