import Webhook from '@lucide/svelte/icons/webhook';
import type { Action, Route } from '../../routes.svelte';

export const routes: readonly Route[] = [
  {
    path: '/o/:org/webhooks',
    area: 'webhooks',
    view: () => import('./Webhooks.svelte'),
    needs: 'WebhookService/ListWebhooks',
    place: { group: 'organization', part: 'log', text: 'nav.webhooks', icon: Webhook, order: 80 },
  },
  {
    path: '/o/:org/webhooks/:webhook',
    area: 'webhooks',
    view: () => import('./Webhook.svelte'),
    needs: 'WebhookService/GetWebhook',
  },
  {
    path: '/o/:org/webhooks/:webhook/deliveries',
    area: 'webhooks',
    view: () => import('./Deliveries.svelte'),
    needs: 'WebhookService/ListWebhookDeliveries',
  },
  {
    path: '/o/:org/webhooks/:webhook/failures',
    area: 'webhooks',
    view: () => import('./Failures.svelte'),
    needs: 'WebhookService/ListWebhookFailures',
  },
];

export const actions: readonly Action[] = [
  { text: 'do.addWebhook', href: '/o/:org/webhooks?add=1', needs: 'WebhookService/AddWebhook' },
];
