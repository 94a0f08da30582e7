#if canImport(SwiftUI)
    import NotesModel
    import SwiftUI

    /// Signs up, logs in, or sets a new password with a printed code.
    struct EntranceScreen: View {
        enum Way: Hashable {
            case signUp, logIn, recover
        }

        let model: NotesModel
        @State private var way = Way.signUp
        @State private var userid = ""
        @State private var password = ""
        @State private var code = ""

        var body: some View {
            Form {
                Picker("", selection: $way) {
                    Text("New account").tag(Way.signUp)
                    Text("Log in").tag(Way.logIn)
                    Text("Password forgotten").tag(Way.recover)
                }
                TextField("Mail address", text: $userid)
                SecureField(way == .logIn ? "Password" : "New password", text: $password)
                switch way {
                case .signUp: Text("Without the password or a printed code the notes cannot be read any more.")
                case .logIn: TextField("Code, if the account has a second factor", text: $code)
                case .recover: TextField("Printed code", text: $code)
                }
                Button("Go on") { model.perform(enter) }.disabled(userid.isEmpty || password.isEmpty)
            }
        }

        private func enter() async throws {
            switch way {
            case .signUp: try await model.signUp(userid, password)
            case .logIn: try await model.logIn(userid, password, code: code.isEmpty ? nil : code)
            case .recover: try await model.recover(userid, code: code, newPassword: password)
            }
        }
    }

    /// Asks for the password of notes that are locked.
    struct UnlockScreen: View {
        let model: NotesModel
        @State private var password = ""

        var body: some View {
            Form {
                SecureField("Password", text: $password)
                Button("Unlock") { model.perform { try await model.unlock(password) } }
            }
        }
    }
#endif
