public import Foundation

// English sentences for users. Apps in other languages use the cases. StateSentences.swift has the sentences of notices
// and states.

extension VaultError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .wrongCredentials: "The name or the password is wrong."
        case .codeRequired: "The account has a second factor. Enter a code."
        case .wrongCode: "The code is wrong, too old or already used."
        case .passkeyRequired(let orCode):
            orCode
                ? "The account has a second factor. Use a passkey, or enter a code."
                : "The account has a second factor. Use a passkey."
        case .wrongPasskey: "The server does not accept the passkey. It is unknown, or its answer came too late."
        case .passkey(let error): error.errorDescription
        case .locked: "The vault is locked. Enter the password."
        case .sessionEnded: "The session has ended. Log in again. No data on this device is lost."
        case .refused(let problem): problem.sentence
        case .unavailable(let error): error.errorDescription
        case .untrustworthy(let refusal): refusal.errorDescription
        case .useridNotCanonical(let canonical): "On the server the name is written “\(canonical)”. Use that form."
        case .keyringUnusable:
            "The server has no keys for this app, or older keys than this device has. Nothing was changed."
        case .keyringReplaced:
            "The password opens only earlier keys, which the server has kept. Restore them if you did not replace the keys yourself."
        case .keyringNotRestorable:
            "The server has older keys, and the password was changed since. Export the items, sign out, log in, and import them."
        case .malformedRecoveryCode: "The recovery code has a typing error."
        case .otherAccount: "This device has the items of another account. Sign out first."
        case .unsentEdits(let count):
            count == 1
                ? "One change has not reached the server yet, and would be lost."
                : "\(count) changes have not reached the server yet, and would be lost."
        case .deletionsHeld: "Many items were deleted. Agree to the deletions first."
        case .noRoom(let shortage): shortage.errorDescription
        case .notFound: "The item does not exist."
        case .sourceFailed: "The file cannot be read."
        case .missingChunk: "The server does not have a part of the attachment."
        case .damagedChunk: "A part of the attachment is damaged on the server."
        case .wrongShareKey: "The key at the end of the link cannot open the share."
        case .invalidCollection(let name):
            "“\(name)” cannot be the name of a collection. Use 1 to 32 of the characters a-z, 0-9 and -."
        case .invalidDocuments(let fault): fault.errorDescription
        case .unreadable: "The content cannot be read."
        case .store(let error): error.errorDescription
        case .shared(let error): error.errorDescription
        }
    }
}

extension StoreError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .inUse: "Another process uses the items of this account."
        case .unusable: "The folder of the items, or the device's key, cannot be used."
        case .exposedFile(let path, _): "Other users of this computer can read or change “\(path)”. It is not used."
        case .readOnly: "The disk is read-only. Nothing was changed."
        case .tooNew: "The items on this device were written by a later version of the app. Update the app."
        case .diskFull: "The disk is full. Nothing was changed."
        case .damaged: "The file of the items is damaged, or the disk fails."
        }
    }
}

extension APIError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .problem(let problem): problem.sentence
        case .transport(let error): error.errorDescription
        case .unexpectedReply: "The server's reply cannot be understood."
        }
    }
}

extension TransportError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .pinMismatch: "The server's key is not the one that this app expects. Nothing was sent."
        case .untrustedCertificate: "The server's certificate is not trusted. Nothing was sent."
        case .unreachable: "The server cannot be reached."
        case .timedOut: "The server did not answer in time."
        case .connectionLost: "The connection was lost."
        case .unacceptableReply: "The server does not use the protocol of this app."
        case .cancelled: "The call was cancelled."
        case .configuration(let fault): fault.errorDescription
        }
    }
}

extension ConfigurationFault: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .address: "The app's address of the server is not of the form https://host or https://host:port."
        case .pin(let pin): "The app's pin “\(pin.prefix(100))” for the server is malformed."
        case .certificate: "The app's certificate for the server is not in PEM."
        case .rateLimit: "The app's limit for the transfer rate is too low."
        case .request: "The app has made a request that cannot be sent."
        case .system: "The system has no resources for connections."
        }
    }
}

extension StretchingRule.Refusal: LocalizedError {
    public var errorDescription: String? {
        let reason =
            switch self {
            case .algorithm: "another algorithm"
            case .saltPrefix, .salt: "another salt"
            case .iterations(let minimum): "fewer than \(minimum) iterations"
            case .tooManyIterations(let maximum): "more than \(maximum) iterations"
            case .keyLength: "another key length"
            case .host: "the salt of another server"
            }
        return "The server asks this app to derive the password's key with \(reason). The password was not used."
    }
}

extension PlanShortage: LocalizedError {
    public var errorDescription: String? {
        switch limit {
        case .items: "The plan has no room. \(needed) items are needed, and \(free) are free."
        case .itemBytes: "The item is too long. It needs \(needed) bytes, and \(free) are allowed."
        case .bytes: "The plan has no room. \(needed) bytes are needed, and \(free) are free."
        case .waitingBytes:
            "The server cannot be reached, and this device has no room for the file until then. It needs \(needed) bytes, and \(free) are free."
        }
    }
}

extension DocumentFault: LocalizedError {
    public var errorDescription: String? {
        let reason =
            switch self.reason {
            case .notUTF8: "is not UTF-8"
            case .noBeginning: "is not the beginning of an export that this version can read"
            case .noDocument: "is not a document"
            case .wrongCount: "has a wrong number of documents"
            case .afterEnd: "follows the last line"
            case .noEnd: "ends the file without its last line"
            }
        return "Line \(line) \(reason). Nothing was imported."
    }
}

extension ShareAddress.Malformation: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .notALink: "The text is not a share link."
        case .noKey: "The end of the link is missing. It contains the key."
        case .brokenKey: "The end of the link, which contains the key, is damaged."
        }
    }
}

extension Problem {
    /// The server's text, shortened for display.
    fileprivate var sentence: String {
        let text = [title, detail].compactMap(\.self).joined(separator: ": ")
        return "The server has rejected it (\(String(text.prefix(500))))."
    }
}
