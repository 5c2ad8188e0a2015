// What the views of webhooks have in common: the fields of their forms, who may change them, and how they show figures.
import type { JsonObject } from '@bufbuild/protobuf';
import { Webhook_State, WebhookService, type Webhook } from '../../gen/signet/v1/webhook_pb';
import { holds, isDefault, may } from '../../lib/access.svelte';
import type { Field } from '../../lib/form/fields';
import { t } from '../../lib/texts.svelte';
import OrganizationsPicker from './OrganizationsPicker.svelte';
import TypesPicker from './TypesPicker.svelte';

/** Whether a webhook gets events of other organizations. */
export function isWide(webhook: Webhook): boolean {
  return webhook.allOrganizations || webhook.organizationIds.length > 0;
}

/**
 * Whether the caller may change a webhook: one that looks into other organizations is for those who may do so
 * everywhere.
 */
export function mayChange(webhook: Webhook, org: string): boolean {
  return may(WebhookService.method.modifyWebhook, isWide(webhook) ? undefined : org);
}

/** The fields of both forms. The address is never shown whole: where there is one, an empty field keeps it. */
export function fieldsOf(org: string, existing: boolean): Field[] {
  const fields: Field[] = [
    { path: 'name', required: true },
    {
      path: 'url',
      label: 'webhooks.url',
      hint: existing ? 'webhooks.urlKeep' : 'webhooks.urlHint',
      required: !existing,
    },
    { path: 'types', label: 'webhooks.types', hint: 'webhooks.typesHint', control: TypesPicker },
    { path: 'personalData', label: 'webhooks.personalData', hint: 'webhooks.personalDataHint' },
  ];
  if (!holds('webhook.write') || !isDefault(org)) return fields;
  return [
    ...fields,
    {
      path: 'allOrganizations',
      section: 'webhooks.reach',
      label: 'webhooks.allOrganizations',
      hint: 'webhooks.allOrganizationsHint',
    },
    {
      path: 'organizationIds',
      label: 'webhooks.organizations',
      hint: 'webhooks.organizationsHint',
      control: OrganizationsPicker,
      when: (value) => value['allOrganizations'] !== true,
    },
  ];
}

/** What the form of a webhook holds at first. */
export function initialOf(webhook: Webhook | undefined): JsonObject {
  if (!webhook) return {};
  const { name, types, personalData, allOrganizations, organizationIds } = webhook;
  return { name, types: [...types], personalData, allOrganizations, organizationIds: [...organizationIds] };
}

export function isActive(webhook: Webhook): boolean {
  return webhook.state === Webhook_State.ACTIVE;
}

/** The answer of a receiver in one word. */
export function statusText(status: number): string {
  return status > 0 ? String(status) : t('webhooks.noAnswer');
}
