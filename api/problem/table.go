package problem

import "net/http"

// entry is one row of the table: all that is the same each time.
type entry struct {
	code   string
	status int
	title  string
	// about is for people: what happened, whether the place in line is safe, and
	// what to do now.
	about string
	// challenge is the WWW-Authenticate header that HTTP asks of every 401. The
	// schemes are ours but for Bearer: browsers ignore what they do not know.
	challenge string
}

// table has every code once. Codes are part of the API: they may be added, and
// neither change nor go.
var table = []entry{
	{code: "bad-request", status: http.StatusBadRequest, title: "The request is malformed",
		about: "The request could not be read: the body is not one JSON object, has a field that does not exist, appears twice or has the wrong type, or a name in the path has characters that names cannot have. Nothing was changed. Correct the request; sending the same again gives the same answer."},
	{code: "body-too-large", status: http.StatusRequestEntityTooLarge, title: "The body is too large",
		about: "No request to this service needs a body of more than 16 KiB, so larger ones are refused unread. Nothing was changed."},
	{code: "unsupported-media-type", status: http.StatusUnsupportedMediaType, title: "The body must be JSON",
		about: "Requests with a body must say Content-Type: application/json, in UTF-8. A request without a body needs no Content-Type."},
	{code: "not-found", status: http.StatusNotFound, title: "There is nothing here",
		about: "No route or resource has this path. Check the spelling; paths are case-sensitive and have no slash at the end."},
	{code: "method-not-allowed", status: http.StatusMethodNotAllowed, title: "The method is not allowed here",
		about: "The path exists but does not take this HTTP method. The Allow header lists those that it does."},
	{code: "unauthorized", status: http.StatusUnauthorized, title: "Who you are could not be verified", challenge: `Bearer realm="linekeeper"`,
		about: "The request needs a valid credential and had none, or one that is wrong or out of date. Sign in again, or send the bearer token that the operator gave you."},
	{code: "forbidden", status: http.StatusForbidden, title: "You may not do this",
		about: "It is known who you are, but this identity has no right to this call. Operators: your token's role does not cover it."},

	{code: "room-not-open", status: http.StatusForbidden, title: "The room is not open yet",
		about: "The waiting room takes nobody before its opening time. Come back then: arriving early and asking often gains nothing."},
	{code: "room-closed", status: http.StatusForbidden, title: "The room takes nobody new",
		about: "The sale is over, or the operator is letting those in line finish and takes nobody new. Whoever already has a place keeps it while the room drains."},
	{code: "room-sold-out", status: http.StatusForbidden, title: "There is nothing left to wait for",
		about: "What this room sells is sold out, so it takes nobody new. Whoever has a place keeps it, and whoever holds an entry token may still order. If more is put on sale the room opens again by itself; its public status says so."},
	{code: "member-blocked", status: http.StatusForbidden, title: "You may not enter this room",
		about: "The operator has excluded this member from the room. Ask the operator if you think that this is a mistake."},
	{code: "proof-of-work-invalid", status: http.StatusForbidden, title: "The proof of work is not good",
		about: "The number in X-Proof-Of-Work solves nothing that was asked of this ticket, or it comes too late, or of another sale. Nothing was changed. Enter again without it, with your ticket: the answer has a puzzle to solve."},
	{code: "challenge-failed", status: http.StatusForbidden, title: "The challenge was not passed",
		about: "The service that tells people from programs does not vouch for X-Challenge-Response: it is not good, has been used, or is too old. Nothing was changed. Pass the challenge once more and enter with its new response."},
	{code: "not-invited", status: http.StatusForbidden, title: "This room is for those who are invited",
		about: "Only those may enter whose account gives them a lane, or who have an access code. Send the code in the header X-Access-Code; never put it into an address. Whoever has a place already needs none."},
	{code: "access-code-refused", status: http.StatusForbidden, title: "The access code does not count here",
		about: "The code in X-Access-Code is wrong, has been used up or revoked, or is of another room; for safety the answer does not say which. Nobody has entered. Look for a typing error; where the room is open to all, enter without a code."},
	{code: "room-not-found", status: http.StatusNotFound, title: "There is no such room",
		about: "No waiting room has this name. It may have been misspelled, or the operator has deleted it."},
	{code: "draw-not-found", status: http.StatusNotFound, title: "There is no such draw",
		about: "The room gives places in order of arrival, or this sale did, or its list has been deleted. Only a draw has a commitment, a list and proofs."},
	{code: "draw-not-over", status: http.StatusConflict, title: "The draw is not over yet",
		about: "The seed, the list of entrants and the proofs are published once the draw has ended and everybody who takes part is listed. Until then there is only the commitment."},
	{code: "not-drawn", status: http.StatusNotFound, title: "You are not in the list of this draw",
		about: "The list has everybody who was in the line when the draw ended. Whoever came later, or had left by then, is not in it and has no proof."},
	{code: "already-ordered", status: http.StatusConflict, title: "You have ordered already",
		about: "This room allows one order per member and sale, and yours exists. It is safe; no second one will be made."},
	{code: "rate-limited", status: http.StatusTooManyRequests, title: "Too many requests",
		about: "You, or your network, sent more requests than allowed. Your place in line is not affected. Wait for the seconds given in Retry-After, then go on."},
	{code: "room-full", status: http.StatusTooManyRequests, title: "The room is full",
		about: "As many people wait as the room can hold. Those who wait keep their places. Try to enter again after the seconds given in Retry-After."},
	{code: "poll-too-fast", status: http.StatusTooManyRequests, title: "You ask for your position too often",
		about: "Your place is safe, and asking more often does not move the line. Wait for nextPollAfterMs of the last answer, or for the seconds given in Retry-After."},
	{code: "ticket-invalid", status: http.StatusUnauthorized, title: "The queue ticket is missing or not valid", challenge: `QueueTicket realm="linekeeper"`,
		about: "The request must show, in X-Queue-Ticket or in the cookie, the queue ticket that entering this room gave. Yours is missing, damaged, out of date or of another room. If it is lost, enter again: that is a new place."},

	{code: "order-in-progress", status: http.StatusConflict, title: "Another order with this entry token is being placed",
		about: "One attempt at a time may use an entry token, and another holds it now. If it was yours and its answer got lost, repeat the same request after the seconds given in Retry-After: you will get the same order, never a second one."},
	{code: "entry-token-missing", status: http.StatusUnauthorized, title: "The entry token is missing", challenge: `EntryToken realm="linekeeper"`,
		about: "Orders are taken only with an entry token in the header X-Entry-Token. Enter the waiting room, and use the token that your position shows once it is READY."},
	{code: "entry-token-invalid", status: http.StatusUnauthorized, title: "The entry token is not valid", challenge: `EntryToken realm="linekeeper"`,
		about: "The entry token is damaged, has expired, or belongs to somebody else or to another room; for safety the answer does not say which. No order was placed with it. Enter the waiting room again for a new one."},
	{code: "entry-token-consumed", status: http.StatusConflict, title: "The entry token has been used",
		about: "An order was placed with this token, and it was a different one from that in this request. A token pays for one order. Look at your position for the id of the order that exists."},
	{code: "sold-out", status: http.StatusConflict, title: "There is not enough left",
		about: "There is less in stock than the order asks for, so nothing was ordered. Your entry token is still good until it expires: you may order less, or something else."},
	{code: "invalid-order", status: http.StatusUnprocessableEntity, title: "The order cannot be taken as it is",
		about: "The request was read, but what it asks for cannot be ordered: an unknown product, a quantity out of range, no items or too many, or items in different currencies. Nothing was ordered and your entry token is still good until it expires."},
	{code: "idempotency-mismatch", status: http.StatusUnprocessableEntity, title: "The Idempotency-Key was used for another order",
		about: "An order with this Idempotency-Key exists and has other content. Use a new key for a new order, and the same key only to repeat the very same one."},
	{code: "order-limit", status: http.StatusTooManyRequests, title: "Too many orders are being placed at this moment",
		about: "The room lets only so many orders run at once. Your entry token is still good: repeat the request after the seconds given in Retry-After."},
	{code: "order-outcome-unknown", status: http.StatusServiceUnavailable, title: "It is not known yet whether the order was placed",
		about: "The connection to the database broke at the very moment of the order. It was either placed whole or not at all. Repeat the same request with the same entry token: if the order exists you will get it, and there will never be a second one."},
	{code: "order-not-found", status: http.StatusNotFound, title: "There is no such order",
		about: "You have no order with this id. Orders are shown only to the member who placed them."},

	{code: "unavailable", status: http.StatusServiceUnavailable, title: "The service is out of order for the moment",
		about: "A part that this service needs does not answer. Your place in line is kept. Try again after the seconds given in Retry-After."},
	{code: "internal", status: http.StatusInternalServerError, title: "Something went wrong on our side",
		about: "An error that nobody foresaw. It has been logged under the requestId of the answer; tell it to the operator if it comes again."},

	{code: "precondition-required", status: http.StatusPreconditionRequired, title: "The request must say which version it changes",
		about: "So that two operators do not overwrite each other's work, a change must carry the ETag of what it was made from in the header If-Match. Get the resource, and send its ETag along."},
	{code: "precondition-failed", status: http.StatusPreconditionFailed, title: "It has been changed in the meantime",
		about: "Somebody changed this after you read it, so your change was not made. Get it again, look at what is different, and send your change with the new ETag."},
	{code: "invalid-settings", status: http.StatusUnprocessableEntity, title: "The settings are not valid",
		about: "A value is out of its range, or some values do not go together. All of them are listed under errors. Nothing was changed."},
	{code: "confirmation-required", status: http.StatusUnprocessableEntity, title: "This must be confirmed with the name of the room",
		about: "The call cannot be undone and sends people away from their places, so its body must repeat the name of the room that it means. Nothing was changed."},
	{code: "room-exists", status: http.StatusConflict, title: "A room of this name exists",
		about: "Names of rooms are unique. Change the existing room, or choose another name."},
	{code: "product-not-found", status: http.StatusNotFound, title: "There is no such product",
		about: "No product has this SKU. It can be made with a PUT to the same path."},
	{code: "conflict", status: http.StatusConflict, title: "It is not in a state that allows this",
		about: "The resource exists, but the call does not fit its present state; the detail says why. Nothing was changed."},
}

// Codes are all codes, in the order of the table.
func Codes() []string {
	codes := make([]string, len(table))
	for i, e := range table {
		codes[i] = e.code
	}
	return codes
}

// lookUp scans: the table is short, and only refusals come here.
func lookUp(code string) (entry, bool) {
	for _, e := range table {
		if e.code == code {
			return e, true
		}
	}
	return entry{}, false
}
