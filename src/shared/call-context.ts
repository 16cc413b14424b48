/** Where an effect comes from. On every signal, operation and call. */
export interface CallContext {
  tenant: string;
  projectId: string;
  agentId: string;
  conversationId: string;
  turnId: string;
  traceparent?: string;
}
