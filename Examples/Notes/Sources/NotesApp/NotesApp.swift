#if canImport(SwiftUI)
    import NotesModel
    import SwiftUI

    @main
    struct NotesApp: App {
        @State private var model = Result { NotesModel(try Server.settings()) }

        var body: some Scene {
            WindowGroup {
                switch model {
                case .success(let model): RootScreen(model: model)
                case .failure(let error): Text(error.localizedDescription)
                }
            }
        }
    }

    /// The screen of the model's stage, and the sentence about what went wrong.
    struct RootScreen: View {
        @Bindable var model: NotesModel

        var body: some View {
            Group {
                switch model.stage {
                case .starting: Button("Open the notes") { model.perform(model.start) }
                case .signedOut: EntranceScreen(model: model)
                case .locked: UnlockScreen(model: model)
                case .open: ListScreen(model: model)
                }
            }
            .task { model.perform(model.start) }
            .alert("That did not work", isPresented: $model.hasProblem) {
                Button("OK") {}
            } message: {
                Text(model.problem ?? "")
            }
        }
    }
#endif
