'use strict';
// The service without idempotency.

require('./orders').serve([]);
