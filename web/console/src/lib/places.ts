// Where the views of objects are.
import type { OperationName } from './api/rules';

/** What an identifier stands for. */
export interface Named {
  readonly id: string;
  /** As in the types of events. */
  readonly kind: 'user' | 'org' | 'app' | 'project' | 'group' | 'idp' | 'webhook';
  readonly name: string;
  /** The organization that it belongs to. */
  readonly org: string;
}

/** The operation that a view needs, and its address. */
const places: Record<Named['kind'], readonly [OperationName | undefined, (n: Named) => string]> = {
  user: ['UserService/GetUser', (n) => `/o/${n.org}/users/${n.id}`],
  org: [undefined, (n) => `/o/${n.id}`],
  app: ['ApplicationService/GetApplication', (n) => `/o/${n.org}/apps/${n.id}`],
  project: ['ProjectService/GetProject', (n) => `/o/${n.org}/projects/${n.id}`],
  group: ['GroupService/GetGroup', (n) => `/o/${n.org}/groups/${n.id}`],
  idp: ['IdentityProviderService/GetIdentityProvider', (n) => `/o/${n.org}/providers/${n.id}`],
  webhook: ['WebhookService/GetWebhook', (n) => `/o/${n.org}/webhooks/${n.id}`],
};

/** The view of an object: its address, and the operation that it cannot do without. */
export function viewOf(object: Named): { href: string; needs: OperationName | undefined } {
  const [needs, place] = places[object.kind];
  return { href: place(object), needs };
}
