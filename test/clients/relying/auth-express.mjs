// Auth.js, as https://authjs.dev/guides/configuring-oauth-providers sets up a provider that it does not know.
import express from 'express';
import { ExpressAuth, getSession } from '@auth/express';

const { ISSUER, CLIENT_ID, CLIENT_SECRET, PORT } = process.env;
const config = {
  secret: 'a text that nobody else knows',
  trustHost: true,
  providers: [{ id: 'signet', name: 'Signet', type: 'oidc', issuer: ISSUER, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET }],
};
const app = express();
app.use('/auth/*', ExpressAuth(config));
app.get('/me', async (req, res) => res.json((await getSession(req, config))?.user ?? null));
app.listen(PORT, '127.0.0.1', () => console.log('listening'));
