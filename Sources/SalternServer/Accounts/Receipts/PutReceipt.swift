internal import HTTPCore

/// `PUT /v1/account/receipt`: stores a purchase receipt with the account, for its owner's export and for admins.
struct PutReceipt: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let receipt = try JSONBody.read(request) { try $0.required("receipt", Receipt.init(json:)) }
        let (account, now) = (authorization.accountID, authorization.now)
        let write = WriteReceipt(receipt: receipt)
        let event = RecordSecurityEvent(accountID: account, kind: .receiptChanged, now: now, writer: write.writer)
        let written = try await authorization.write(
            write, followedBy: StoreReceipt(write: write, accountID: account, now: now), event,
            DropOldEvents(after: event)
        ).first.first
        guard let written else { throw Unauthenticated() }
        let updatedAt = written.isNew ? now : written.updatedAt ?? now
        return .json { writer in
            writer.object { writer in writer.member("receiptUpdatedAt", updatedAt) }
        }
    }
}
