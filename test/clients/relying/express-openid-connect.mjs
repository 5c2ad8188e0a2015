// express-openid-connect, as its EXAMPLES.md sets up an application that uses the code flow.
import express from 'express';
import oidc from 'express-openid-connect';

const { ISSUER, CLIENT_ID, CLIENT_SECRET, BASE, PORT } = process.env;
const app = express();
app.use(
  oidc.auth({
    issuerBaseURL: ISSUER,
    baseURL: BASE,
    clientID: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    secret: 'a text that nobody else knows, and that is long',
    authRequired: false,
    authorizationParams: { response_type: 'code' },
  }),
);
app.get('/me', (req, res) => res.json(req.oidc.user ?? null));
app.listen(PORT, '127.0.0.1', () => console.log('listening'));
