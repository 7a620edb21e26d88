/** Requests of RFC 8693 (OAuth 2.0 token exchange): a form that asks for one token in exchange for another. */
import { JWT_TYPE, TOKEN_EXCHANGE } from "./federated-token.ts";

export interface ExchangeRequest {
  readonly subjectToken: string;
  /** Empty for the default. */
  readonly scope: string;
}

export interface FormRequest {
  readonly method: string;
  readonly contentType: string;
  readonly body: string;
}

const FORM = "application/x-www-form-urlencoded";

/** What the form asks for, or what is wrong with it. Fields that change nothing here (`audience`, `resource`, ...) are let pass. */
export function parseExchangeRequest({
  method,
  contentType,
  body,
}: FormRequest): ExchangeRequest | { problem: string } {
  if (method !== "POST") return { problem: `request method is invalid, should be POST but get ${method}` };
  if (contentType.split(";")[0]?.trim().toLowerCase() !== FORM)
    return { problem: `request content type is invalid, should be ${FORM} but get ${contentType}` };
  const form = new URLSearchParams(body);
  const repeated = [...new Set(form.keys())].find((name) => form.getAll(name).length > 1 && !REPEATABLE.has(name));
  if (repeated !== undefined) return { problem: `${repeated} is given more than once` };
  const field = (name: string) => form.get(name) ?? "";
  if (field("grant_type") !== TOKEN_EXCHANGE)
    return {
      problem: `request query grant_type is invalid, should be ${TOKEN_EXCHANGE} but get ${field("grant_type")}`,
    };
  if (field("subject_token") === "") return { problem: "subject_token is empty" };
  if (field("subject_token_type") !== JWT_TYPE)
    return { problem: `subject_token_type is invalid, should be ${JWT_TYPE} but get ${field("subject_token_type")}` };
  if ((field("actor_token") === "") !== (field("actor_token_type") === ""))
    return { problem: "actor_token and actor_token_type must be given together" };
  return { subjectToken: field("subject_token"), scope: field("scope") };
}

/** Several targets may be named. */
const REPEATABLE: ReadonlySet<string> = new Set(["resource", "audience"]);
