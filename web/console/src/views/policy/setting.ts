// How a policy is set: that of an organization, or without one that of the installation.
import {
  isMessage,
  toJson,
  type DescMessage,
  type DescMethodUnary,
  type JsonObject,
  type Message,
} from '@bufbuild/protobuf';
import {
  PolicySchema,
  PolicyService,
  SetOrganizationPolicyResponseSchema,
  type Policy,
  type PolicyWarning,
} from '../../gen/signet/v1/policy_pb';

/** What forms need to know about the policy that they change. */
export interface Setting {
  readonly org: string | undefined;
  readonly own: JsonObject;
  readonly effective: JsonObject;
  readonly defaults: JsonObject;
  /** The sequence that a change is based on. */
  readonly match: bigint | undefined;
  /** The name of an identity provider. */
  readonly provider: (id: string) => string;
  /** Reads the policy again after a conflict. */
  readonly latest: () => Promise<{ own: JsonObject; match: bigint }>;
}

/** A policy in the JSON form of the API. */
export function policyJson(from: Policy | undefined): JsonObject {
  return from ? (toJson(PolicySchema, from) as JsonObject) : {};
}

/** The operation that sets the policy. Both take the policy in a field of the same name. */
export function setter(org: string | undefined): DescMethodUnary<DescMessage, DescMessage> {
  return org === undefined ? PolicyService.method.setInstallationPolicy : PolicyService.method.setOrganizationPolicy;
}

/** The request that sets it. */
export function requestFor(org: string | undefined, policy: JsonObject): JsonObject {
  return { ...(org !== undefined && { orgId: org }), policy };
}

/** What the answer warns of. */
export function warningsIn(answer: Message): readonly PolicyWarning[] {
  return isMessage(answer, SetOrganizationPolicyResponseSchema) ? answer.warnings : [];
}
