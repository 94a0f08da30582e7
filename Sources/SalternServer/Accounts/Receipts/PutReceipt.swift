internal import HTTPCore

/// `PUT /v1/account/receipt`: stores a purchase receipt with the account, for its owner's export and for admins.
struct PutReceipt: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let receipt = try JSONBody.read(request) { try $0.required("receipt", Receipt.init(json:)) }
        guard let updatedAt = try await authorization.write(WriteReceipt(receipt: receipt)).first else {
            throw Unauthenticated()
        }
        return .json { writer in
            writer.object { writer in writer.member("receiptUpdatedAt", updatedAt) }
        }
    }
}
