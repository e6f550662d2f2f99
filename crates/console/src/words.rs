//! Words of the console, each in both languages, in one table; and facts of the ledger in words.

use ledger::event::Event;

pub(crate) use ops::wire_words::fields::*;
pub(crate) use web::language::{Word, word};
use web::session::FormOutcome;

macro_rules! words {
    ($($name:ident = $pt:literal, $en:literal;)*) => {
        $(
            #[allow(missing_docs, reason = "the texts say what each is")]
            pub(crate) const $name: Word = word($pt, $en);
        )*
        /// Every word, for the test of the table.
        #[cfg(test)]
        const ALL: &[(&str, Word)] = &[$((stringify!($name), $name)),*];
    };
}

words! {
    // Frame of every page.
    SKIP = "Ir para o conteúdo", "Skip to the content";
    SECTIONS = "Seções", "Sections";
    FIND = "Buscar", "Find";
    FIND_WHAT = "txid, CPF, nome, e-mail, valor, data, NSU, final do cartão ou id", "txid, CPF, name, e-mail, amount, day, NSU, last digits of a card or id";
    FOUND_NEWEST = "Só os mais recentes.", "Only the newest.";
    FOUND_ALL = "Ver todos", "See all";
    SIGN_OUT = "Sair", "Sign out";
    SANDBOX_BANNER = "Sandbox: dinheiro de mentira.", "Sandbox: the money is fake.";
    CLOCK = "Relógio", "Clock";
    OTHER_LANGUAGE = "English", "Português";
    KEYS_OPEN = "Teclas", "Keys";
    KEY_HELP = "Mostra esta lista", "Shows this list";
    KEY_FIND = "Vai para a busca", "Goes to the find box";
    KEY_NEXT = "Próxima linha", "Next row";
    KEY_BEFORE = "Linha anterior", "Row before";
    KEY_CHOOSE = "Escolhe a linha", "Chooses the row";
    LETTERS_ON = "usar teclas de uma letra", "use keys of a single letter";
    CLOSE = "Fechar", "Close";
    ONLY_OF = "Só de", "Only of";
    TIMES_ARE = "As horas são de São Paulo, 3 horas atrás de UTC.", "Times are those of São Paulo, 3 hours behind UTC.";
    ALL_MERCHANTS = "todos os lojistas", "all merchants";
    // Sections.
    OVERVIEW = "Visão geral", "Overview";
    MERCHANTS = "Lojistas", "Merchants";
    QUEUE = "Fila", "Queue";
    HOUSE = "Casa", "House";
    TRIAL_BALANCE = "Balancete", "Trial balance";
    JOURNAL = "Diário", "Journal";
    WEBHOOKS = "Webhooks", "Webhooks";
    HEALTH = "Saúde", "Health";
    RECONCILIATION = "Conciliação", "Reconciliation";
    COMPARE_FILE = "Conferir um arquivo", "Compare a file";
    COMPARE_WHAT = "Extrato do banco (OFX), lotes da adquirente (CSV) ou lista de PIX (JSON). Nada é lançado.", "Statement of the bank (OFX), batches of the acquirer (CSV) or PIX list (JSON). Nothing is booked.";
    FILE = "Arquivo", "File";
    FILE_MISSING = "Escolha um arquivo.", "Choose a file.";
    BANK_ACCOUNT_OF_FILE = "Conta do extrato", "Account of the statement";
    RECOGNIZED = "Reconhecer pelo número no arquivo", "Recognize by the number in the file";
    ACCTID = "Número da conta no banco (ACCTID)", "Number of the account at the bank (ACCTID)";
    CLOSING_BALANCE = "Saldo final do extrato", "Closing balance of the statement";
    DIFFERENCE = "Diferença", "Difference";
    COMPARE_AGAIN = "conferir de novo um arquivo já conferido", "compare a file again";
    DAYS_COVERED = "Dias conferidos", "Days compared";
    DAY_COMPARED = "conferido", "compared";
    DAY_NOT_COMPARED = "não conferido", "not compared";
    RESULTS = "Resultados", "Results";
    RESULT = "Resultado", "Result";
    DAYS = "Dias", "Days";
    MATCHED = "Conferem", "Matched";
    DIFFERS = "Divergem", "Differ";
    ONLY_OURS = "Só nos livros", "Only ours";
    ONLY_THEIRS = "Só no arquivo", "Only theirs";
    REPEATED = "Repetidas", "Repeated";
    UNDECIDED = "Indefinidas", "Undecided";
    LINES = "Linhas", "Lines";
    LINE = "Linha", "Line";
    DIFFERENCES = "Diferenças", "Differences";
    OPEN_DIFFERENCES = "Diferenças em aberto", "Open differences";
    ALL_MATCHED = "Tudo confere.", "Everything matches.";
    OURS_DAY = "Dia nos livros", "Our day";
    OURS = "Nos livros", "Ours";
    THEIRS_DAY = "Dia no arquivo", "Their day";
    THEIRS = "No arquivo", "Theirs";
    EXPLAIN = "Explicar", "Explain";
    IN_ANOTHER_FILE = "Está em outro arquivo", "In another file";
    SIGNS = "Sinais", "Signs";
    SIGNS_BY_TYPE = "pelo tipo de cada linha: os débitos vieram sem sinal", "by the type of each line: debits came without a sign";
    EXPLAINED = "Explicadas", "Explained";
    EXPLAINED_BY = "Lançamento que já explica (id)", "Entry that explains it already (id)";
    BY_REASON = "Explicar sem lançar", "Explain without an entry";
    BY_REASON_WHAT = "Para o que chega em outro arquivo, o que a instituição corrige, ou o que um lançamento já explica. Deixa de contar no fechamento.", "For what comes in another file, what the institution corrects, or what an entry explains already. It no longer counts in the closing.";
    BANK_HAS_LESS = "A instituição tem menos que os livros: uma tarifa retida é despesa; o que ainda deve chegar fica em valores a identificar até chegar.", "The institution has less than the books: a fee that it withheld is an expense; what still has to come stays in suspense until it does.";
    BANK_HAS_MORE = "A instituição tem mais que os livros: a diferença entra no banco contra valores a identificar, até que se saiba de quem é.", "The institution has more than the books: the difference is booked in the bank against suspense until its owner is known.";
    DIFFERENCE_EXPLAINED = "A linha foi explicada.", "The line was explained.";
    DISMISS = "Descartar o resultado", "Dismiss the result";
    DISMISS_WHAT = "Era um arquivo errado: as diferenças e os dias deixam de contar no fechamento.", "It was a wrong file: its differences and its days no longer count in the closing.";
    DISMISSED = "Descartado", "Dismissed";
    FILE_COMPARED = "O arquivo foi conferido.", "The file was compared.";
    RESULT_DISMISSED = "O resultado foi descartado.", "The result was dismissed.";
    EXPORTS = "Exportar", "Exports";
    REPORTS = "Relatórios", "Reports";
    REPORT = "Relatório", "Report";
    DAYS_BY = "Dias pela", "Days by";
    BY_BOOKING = "Data do registro", "Booking";
    BY_EFFECT = "Data de competência", "Effect";
    WHOSE = "De quem (vazio: de todos)", "Whose (empty: of all)";
    SAMPLE_MAPS = "Modelos", "Samples";
    FOR_PEOPLE = "Planilhas", "Spreadsheets";
    FOR_PROGRAMS = "Para programadores", "For programmers";
    WHOLE_TAX_IDS = "Documentos completos (CPF e CNPJ sem máscara); a leitura fica na auditoria", "Whole documents (CPF and CNPJ unmasked); the audit says who read them";
    WHOSE_ONE = "De quem", "Whose";
    NAME_OR_ID = "O nome, ou M-…, R-…, P-…", "The name, or M-…, R-…, P-…";
    PRINT = "Imprimir", "Print";
    AUDIT = "Auditoria", "Audit";
    SANDBOX = "Sandbox", "Sandbox";
    // Sign-in.
    SIGN_IN = "Entrar", "Sign in";
    TOKEN = "Token de operador", "Operator token";
    TOKEN_WRONG = "Este token não abre nada. Cole o token inteiro, sem o nome e os dois-pontos.", "This token opens nothing. Paste all of it, without the name and the colon.";
    TOKEN_LATER = "Muitos tokens errados vieram deste endereço. Nenhum é conferido até o fim do minuto.", "Too many wrong tokens came from this address. None is checked until the minute is over.";
    NEEDS_HTTPS = "Este endereço precisa de https, e não se sabe se ele o tem: não envie o token. Em http ele passa às claras, e o navegador só guarda a sessão quando o endereço é 127.0.0.1 ou localhost. Um proxy diz que fala https com X-Forwarded-Proto.", "This address needs https, and is not known to have it: do not send the token. Over http it passes in clear, and the browser keeps the session only when the address is 127.0.0.1 or localhost. A proxy says that it speaks https with X-Forwarded-Proto.";
    ENDED_OR_NEW = "Use o token que está em CENTAVO_OPS_TOKEN, ou no arquivo operator.token da pasta de dados.", "Use the token of CENTAVO_OPS_TOKEN, or of the file operator.token in the data folder.";
    // Money and tables.
    ACCOUNT = "Conta", "Account";
    DEBIT = "Débito", "Debit";
    CREDIT = "Crédito", "Credit";
    SUM = "Soma", "Sum";
    BALANCE = "Saldo", "Balance";
    AMOUNT = "Valor", "Amount";
    SHARE = "Parte", "Part";
    WHEN = "Quando", "When";
    WHAT = "O quê", "What";
    WHO = "Quem", "Who";
    NAME = "Nome", "Name";
    DOCUMENT = "Documento", "Document";
    KIND = "Tipo", "Kind";
    ID = "Id", "Id";
    NOTES = "Motivo", "Reason";
    NOTHING = "Nada por aqui.", "Nothing here.";
    PAGE = "Página", "Page";
    OF = "de", "of";
    NEWER = "Mais novos", "Newer";
    OLDER = "Mais antigos", "Older";
    LEDGER = "Razão", "Ledger";
    PLATFORM = "Plataforma", "Platform";
    MERCHANT = "Lojista", "Merchant";
    RECIPIENT = "Recebedor", "Recipient";
    RECIPIENTS = "Recebedores", "Recipients";
    HOUSE_ENTRY = "Lançamento da casa", "Entry of the house";
    OPERATOR_ENTRY = "Lançamento de operador", "Entry of an operator";
    WRITE_OFF_ENTRY = "Baixa de dívida", "Write-off of a debt";
    GOODWILL_ENTRY = "Crédito da casa", "Credit of the house";
    RETURN_ENTRY = "Devolução de saque", "Return of a withdrawal";
    METADATA = "Metadados", "Metadata";
    FISCAL_DOCUMENTS = "Documentos fiscais", "Fiscal documents";
    ISSUER_UNKNOWN = "emitente não é parte do pagamento", "issuer is no party of the charge";
    REFERENCE = "Referência", "Reference";
    REFERENCE_REPEATS = "O documento prova mais de um lançamento", "The document proves more than one entry";
    // Overview.
    HOLDS = "Ativo", "Assets";
    OWES = "Passivo", "Liabilities";
    EQUITY = "Patrimônio líquido", "Equity";
    EARNED = "Receitas", "Income";
    SPENT = "Despesas", "Expenses";
    LAST_DAYS = "Últimos 90 dias", "The last 90 days";
    DAY = "Dia", "Day";
    FIGURES_BY_DAY = "Números por dia", "Figures by day";
    SALES_BY_DAY = "Vendas por dia", "Sales by day";
    BANKS_BY_DAY = "Entradas e saídas dos bancos por dia", "Money in and out of the banks by day";
    SALES_BY_CARD = "Cartão", "Card";
    MONEY_IN = "Entradas", "In";
    MONEY_OUT = "Saídas", "Out";
    APPROVED = "Cartões aprovados", "Cards approved";
    CARDS_REFUSED = "Cartões recusados", "Cards refused";
    REFUSAL_REASONS = "Motivos das recusas", "Reasons of refusals";
    BOOKS = "Os livros", "The books";
    WAITS = "O que espera decisão", "What waits for a decision";
    BALANCED = "Débitos e créditos são iguais.", "Debits equal credits.";
    UNBALANCED = "Débitos e créditos NÃO são iguais.", "Debits do NOT equal credits.";
    THROUGH_RECORD = "até o", "through";
    ITS_WEBHOOKS = "Webhooks desta cobrança", "Webhooks of this charge";
    // One charge.
    TXID = "txid", "txid";
    CHARGE = "Cobrança", "Charge";
    CHARGE_OF = "Cobrança de", "Charge of";
    CHARGES = "Cobranças", "Charges";
    METHOD = "Meio", "Method";
    SUBSCRIPTION = "Assinatura", "Subscription";
    PLAN = "Plano", "Plan";
    CARD = "Cartão guardado", "Stored card";
    DELETED = "Excluído", "Deleted";
    NEXT_CHARGE = "Próxima cobrança", "Next charge";
    BEGAN = "Começou", "Began";
    PAID_CYCLES = "Ciclos pagos", "Cycles paid";
    UNPAID_CYCLES = "Ciclos não pagos", "Cycles not paid";
    PAYER = "Pagador", "Payer";
    ACQUIRER = "Adquirente", "Acquirer";
    INSTITUTION = "Instituição PIX", "PIX institution";
    CREATED = "Criada", "Created";
    PAID_AT = "Paga", "Paid";
    DUE_AT = "Disponível em", "Available at";
    EXPIRES = "Vence", "Expires";
    DESCRIPTION = "Descrição", "Description";
    END_TO_END = "Id fim a fim", "End-to-end id";
    CHARGE_ASKED = "O que foi pedido", "What was asked for";
    FLOW = "Para onde foi o dinheiro", "Where the money went";
    EXPIRED_UNPAID = "O código PIX venceu sem pagamento.", "The PIX code expired unpaid.";
    CANCELLED_UNPAID = "O lojista cancelou antes do pagamento.", "The merchant cancelled it before it was paid.";
    FEES = "Comissão da plataforma", "Platform commission";
    FEE_MDR = "MDR", "MDR";
    FEE_PIX = "PIX", "PIX";
    FEE_CASHOUT = "Cashout", "Cashout";
    OTHER_RECIPIENTS = "Outros recebedores", "Other recipients";
    ENTRIES = "Partidas dobradas", "Double entry";
    TIMELINE = "Linha do tempo", "Timeline";
    RECORD = "Registro", "Record";
    BLOCK = "bloco", "block";
    SELLER_MATURES = "A parte do vendedor fica disponível em", "The seller's part is available at";
    SPLITS_MATURE = "a dos recebedores em", "that of the recipients at";
    REFUNDS = "Reembolsos", "Refunds";
    DISPUTES = "Contestações", "Disputes";
    REFUND = "Reembolso", "Refund";
    DISPUTE = "Contestação", "Dispute";
    OPENED_WITHOUT_MONEY = "Nenhum lançamento: nada se moveu.", "No entries: nothing moved.";
    MORE_POSTINGS = "Há mais partidas do que esta página mostra.", "There are more postings than this page shows.";
    MORE_ON_RECORD = "As partidas dos outros registros desta página estão nas páginas deles.", "The postings of the other Records of this page are on their own pages.";
    LONG_TEXTS = "Textos longos aparecem cortados nesta página.", "Long texts are cut on this page.";
    EARLIER = "Anteriores", "Before";
    FOLLOWING = "Seguintes", "Next";
    // Records and ledgers.
    EVENTS = "Fatos", "Facts";
    OWNER = "De quem", "Owner";
    TOOK_EFFECT = "Vale desde", "Took effect";
    EFFECT_DAY = "Vale desde (vazio: hoje)", "Takes effect on (empty: today)";
    BOOKED = "Gravado", "Booked";
    BLOCK_HEADING = "Bloco", "Block";
    BLOCK_HASH = "Hash do bloco", "Hash of the block";
    BLOCK_BEFORE = "Hash do bloco anterior", "Hash of the block before it";
    RECORDS = "Registros", "Records";
    BLOCK_RECORDS = "Registros do bloco", "Records of the block";
    FIELD_CHANGES = "O que mudou", "What changed";
    ASKED_BY = "Pedido por", "Asked for by";
    APPROVED_BY = "Aprovado por", "Approved by";
    REJECTED_BY = "Recusado por", "Rejected by";
    REJECTED_WHY = "Motivo da recusa", "Reason of the rejection";
    THE_SERVICE = "o próprio serviço", "the service itself";
    API_KEY = "chave de API", "API key";
    // Queue and decisions.
    ALL_KINDS = "Todos", "All";
    DECIDED = "Decidido.", "Decided.";
    CHOSEN = "Escolhidos", "Chosen";
    CHOOSE = "Escolher", "Choose";
    CHOOSE_DECISION = "Escolha o que decidir: aprovar ou recusar (decision).", "Choose what to decide: approve or reject (decision).";
    CHOOSE_SOME = "Escolha de 1 a 20 itens da fila.", "Choose 1 to 20 items of the queue.";
    APPROVE_CHOSEN = "Aprovar os escolhidos", "Approve the chosen ones";
    REJECT_CHOSEN = "Recusar os escolhidos", "Reject the chosen ones";
    WAITING_COUNT = "à espera", "waiting";
    SHOW = "Mostrar", "Show";
    WHOLE_LIST = "A lista inteira", "The whole list";
    WITHDRAWAL = "Saque", "Withdrawal";
    PAYOUT = "Transferência sem resposta", "Transfer without an answer";
    WAITS_NO_MORE = "Isto não espera mais: alguém já decidiu.", "This does not wait any more: somebody decided.";
    RAIL_ITEM = "Desfecho desconhecido", "Unknown outcome";
    WAITING_NOTICE = "Aviso da instituição que espera", "Notification that waits";
    SETTLE_BY_WORD = "Dizer o desfecho", "Say the outcome";
    SETTLE_WHAT = "A instituição não disse o que aconteceu e continua sendo consultada. Depois de uma hora, dois operadores podem dizer, com a mesma referência. Desde o primeiro nada é enviado de novo; o segundo fala uma hora depois do último envio, e no mesmo dia: após 24 horas a palavra do primeiro não vale mais. O lojista lê o motivo de um reembolso, uma transferência ou um saque que não aconteceu.", "The institution has not said what became of it, and goes on being asked. After an hour, two operators may say it, with the same reference. From the first one on nothing is sent again; the second one speaks an hour after the last sending. After 24 hours without a second one the word of the first lapses. The merchant reads the reason of a refund, cashout or withdrawal that did not happen.";
    OWN_WORD_WAITS = "Outro operador diz o mesmo. Para trocar a sua palavra, diga outra.", "Another operator says the same. Say another outcome or reference to replace your word.";
    DROP_WHAT = "Um aviso da instituição não cabe nas contestações desta cobrança. Quando couber, é lançado em até um minuto. Dois operadores podem descartá-lo, com a mesma referência: diga que não aconteceu.", "A notification of the institution does not fit the disputes of this charge. Once it fits, it is booked within a minute. Two operators may drop it, with the same reference: say that it did not happen.";
    WAITS_FOR = "Espera", "Waits for";
    ORDERED = "O que foi pedido", "What was ordered";
    RAIL = "Instituição", "Institution";
    SETTLES_FROM = "Outro operador pode dizer desde", "Another operator may say it from";
    WHAT_BECAME = "O que aconteceu", "What became of it";
    HAPPENED = "aconteceu: o dinheiro saiu ou entrou", "it happened: the money moved";
    DID_NOT_HAPPEN = "não aconteceu, e não vai acontecer", "it did not happen, and will not";
    ANSWER_UNTIL = "Responder até", "Answer until";
    CASE = "Caso na instituição", "Case at the institution";
    SHARING = "Outros recebedores com os mesmos dados", "Other recipients with the same data";
    FLAGS = "Atenção", "Look at";
    AMOUNT_FROM = "Valor de", "Amount from";
    AMOUNT_TO = "até", "to";
    DAY_FROM = "Pedido de", "Asked for from";
    DAY_TO = "até", "to";
    SUM_OF_THESE = "soma", "in sum";
    CHARGE_REASON = "Motivo do lojista", "Reason of the merchant";
    COMMISSION_BACK = "Comissão que volta ao lojista", "Commission that goes back to the merchant";
    BALANCES_AFTER = "Saldos depois da decisão", "Balances after the decision";
    BEFORE = "Antes", "Before";
    AFTER = "Depois", "After";
    DECISIONS = "Decisões", "Decisions";
    ACCOUNT_SINCE = "Conta registrada desde", "Account registered since";
    ACCOUNT_UNTIL = "Outra conta registrada em", "Another account registered at";
    SPLITS_IN_IT = "Repasses neste saque", "Splits in this withdrawal";
    MERCHANT_BY_KEY = "o lojista, por chave de API", "the merchant, by an API key";
    ANTICIPATED_IN_IT = "Antecipado neste saque", "Anticipated in this withdrawal";
    OTHER_WITHDRAWALS = "Outros saques do recebedor", "Other withdrawals of the recipient";
    REFUNDED = "Reembolsado até agora", "Refunded so far";
    REGISTRATION = "Cadastro", "Registration";
    REVEAL = "Mostrar o cadastro sem máscara", "Show the registration unmasked";
    PARTNER = "Sócio administrador", "Managing partner";
    EMAIL = "E-mail", "E-mail";
    BIRTH_DATE = "Nascimento", "Birth date";
    MOTHER = "Nome da mãe", "Mother's name";
    PHONES = "Telefones", "Telephones";
    ADDRESS_OF = "Endereço", "Address";
    INCOME = "Renda mensal ou faturamento anual", "Monthly income or annual revenue";
    REVEAL_WHAT = "Quem olhou, de quem e quando ficam na auditoria.", "Who looked, whose it was and when stand in the audit trail.";
    PERSONAL_DATA = "Dados pessoais", "Personal data";
    DATA_WHAT = "O que se guarda: do pagador, nome, CPF ou CNPJ, e-mail e telefone; de recebedores e lojistas, o cadastro; de saques e cashouts, o destino. Cartões ficam no adquirente.", "What is stored: a payer's name, tax id, email and telephone; the registrations of recipients and merchants; where withdrawals and cashouts went. Cards are at the acquirer.";
    DATA_WHY = "Por quê: a escrituração e a prova de cada pagamento, e a prevenção a fraudes, que a lei manda guardar.", "Why: the books and the proof of each payment, and the prevention of fraud, which the law has stored.";
    DATA_UNTIL = "Até quando: dez anos depois do mês, cifrados com a chave do mês. Depois, dois operadores eliminam a chave, e o que ela cifrou não abre mais; os valores ficam.", "Until when: ten years after the month, encrypted under the month's key. Then two operators drop the key, and nothing under it opens any more; amounts stay.";
    DATA_REFUSED = "O que se recusa: apagar dentro desse prazo, e apagar o cadastro de quem ainda opera. Um cartão guardado se exclui a pedido.", "What is refused: erasure before that, and erasure of a registration that is still in force. A stored card is deleted on request.";
    PERSON = "Uma pessoa", "One person";
    PERSON_WHAT = "Mostra onde estão os dados de um CPF ou CNPJ. Quem consultou e quando fica na auditoria.", "Shows where the data of a tax id stands. Who looked, and when, stands in the audit trail.";
    LOOK_UP = "Consultar", "Look up";
    DOCUMENT_WRONG = "Isto não é um CPF nem um CNPJ.", "This is no CPF or CNPJ.";
    MORE_OF_PERSON = "Há mais: aqui estão os 1.000 registros mais novos de cada tipo.", "There is more: these are the newest 1,000 Records of each kind.";
    DELETE_CARD = "Excluir o cartão", "Delete the card";
    CARD_DELETED = "O cartão está excluído. Ao adquirente foi pedido que exclua o token dele.", "The card is deleted. The acquirer was asked to delete its token.";
    SEALED_MONTHS = "Meses guardados", "Months that are stored";
    STORED_UNTIL = "Guardado até", "Stored until";
    ERASE_THROUGH = "Eliminar até o mês", "Erase through the month";
    ERASE_WHAT = "Não se desfaz. Dois operadores pedem o mesmo mês. Cópias de segurança antigas ainda têm as chaves: apague-as também.", "It cannot be undone. Two operators ask for the same month. Older backups still have the keys: delete them too.";
    ERASE = "Eliminar", "Erase";
    ERASURES = "Eliminações", "Erasures";
    TAKE_BACK = "Retirar o pedido", "Take the request back";
    ERASURE_WITHDRAWN = "O pedido de eliminação foi retirado.", "The request for the erasure was taken back.";
    ERASED = "eliminado", "erased";
    ANOTHER_ERASES = "Falta outro operador pedir o mesmo mês.", "Another operator has to ask for the same month.";
    DATA_ERASED = "As chaves desses meses foram eliminadas.", "The keys of these months were dropped.";
    BATCH_FILE = "Arquivo do adquirente", "File of the acquirer";
    FILES_WAIT = "Arquivos à espera de outro operador", "Files that wait for another operator";
    OPERATOR_NOTES = "Notas", "Notes";
    NEW_NOTE = "Nova nota", "New note";
    NOTE_WHAT = "Fica para sempre, com nome e hora, sem máscara: não escreva dados pessoais.", "It stays for ever, with name and time, in the clear: write no personal data.";
    WRITE_NOTE = "Anotar", "Write the note";
    NOTE_WRITTEN = "A nota está escrita.", "The note is written.";
    START_REFUND = "Pedir reembolso", "Start a refund";
    REFUND_ALL = "Sem valor: tudo o que ainda pode ser reembolsado. O pedido espera na fila; nada se move antes da aprovação.", "Without an amount: all that can still be given back. It waits in the queue; nothing moves before it is approved.";
    REFUND_STARTED = "O reembolso espera na fila.", "The refund waits in the queue.";
    MONTH_CLOSING = "Fechamento de mês", "Closing of a month";
    APPROVED_BY_ONE = "Um operador aprovou; outro precisa aprovar também.", "One operator has approved; another one has to as well.";
    SUSPEND = "Suspender", "Suspend";
    RESUME = "Reativar", "Resume";
    HOLD_PAYOUTS = "Reter saídas de dinheiro", "Hold payouts";
    RELEASE_PAYOUTS = "Liberar saídas de dinheiro", "Release payouts";
    HOLDS_WHAT = "Suspensa, a conta não cria cobranças nem cashouts; o que está aberto segue. Retidas as saídas, nada é pago ao lojista nem aos recebedores dele.", "A suspended account creates no charges and no cashouts; what is open goes on. While payouts are held, nothing is paid to the merchant or its recipients.";
    FROZEN = "Recebedor congelado", "Frozen";
    FREEZE = "Congelar", "Freeze";
    UNFREEZE = "Descongelar", "Unfreeze";
    FREEZE_WHAT = "Congelado, o recebedor continua a receber repasses; saques e antecipações esperam.", "A frozen recipient goes on to receive splits; withdrawals and anticipations wait.";
    HOLDS_HEADING = "Suspender ou reter", "Suspend or hold";
    REVIEW = "Análise", "Review";
    REVIEW_REGISTRATION = "cadastro", "registration";
    REVIEW_ACCOUNT = "conta bancária", "bank account";
    BOOKS_AT_ONCE = "Lançado com a decisão", "Booked with the decision";
    BOOKS_AT_TRANSFER = "Lançado quando a instituição aceitar a transferência", "Booked when the institution has taken the transfer";
    APPROVE = "Aprovar", "Approve";
    REJECT = "Recusar", "Reject";
    ACCEPT = "Aceitar a contestação", "Accept the dispute";
    RELEASE = "Liberar o valor", "Release the money";
    // Recipients.
    STATEMENT = "Extrato", "Statement";
    WITHDRAWALS = "Saques", "Withdrawals";
    AVAILABLE = "Disponível", "Available";
    PENDING = "A vencer", "Falls due later";
    RESERVED = "Em saque", "Under a withdrawal";
    WITHDRAWN = "Sacado", "Withdrawn";
    DEBT = "Dívida com o lojista", "Debt to the merchant";
    ANTICIPATIONS = "Antecipações", "Anticipations";
    PAID_BACK = "Dívidas pagas", "Debts paid back";
    OF_NEWEST_ENTRIES = "As 40 mais novas entre os 200 lançamentos mais novos deste recebedor.", "The newest 40 among the newest 200 entries of this recipient.";
    COUNT = "Quantos", "Count";
    FEE = "Taxa", "Fee";
    RATE = "Taxa (%)", "Rate (%)";
    SPLITS_OF = "Repasses dos recebedores", "Splits of the recipients";
    REST = "Resto", "Rest";
    SPLIT_UNPAID = "cobrança não paga", "charge not paid yet";
    SPLIT_WITHDRAWN = "em saque", "under a withdrawal";
    SPLIT_PENDING = "a vencer", "falls due";
    SPLIT_AVAILABLE = "disponível", "available";
    SPLIT_ANTICIPATED = "antecipada", "anticipated";
    OTHER_PARTS = "Outras partes", "Other parts";
    // Merchants.
    MORE_RECORDS = "Há mais registros sobre esta cobrança; esta página mostra os 100 mais antigos.", "There are more Records about this charge; this page shows the oldest 100.";
    OPENED = "Aberto", "Opened";
    CITY = "Cidade", "City";
    CLAIMS = "O que a plataforma deve a ele", "What the platform owes it";
    PRICES = "Taxas", "Fees";
    KEYS = "Chaves de API", "API keys";
    STATUS_PENDING = "pendente", "pending";
    STATUS_PAID = "paga", "paid";
    STATUS_REFUSED = "recusada", "refused";
    STATUS_CANCELLED = "cancelada", "cancelled";
    FROM = "De", "From";
    TO = "Até", "To";
    // Trial balance and journal.
    BY_ACCOUNT = "Por conta", "By account";
    BY_LEDGER = "Por razão", "By ledger";
    LEDGERS_WITH = "Razões com a conta", "Ledgers with the account";
    AT_END_OF = "No fim do dia", "At the end of the day";
    BEFORE_BLOCK = "Blocos anteriores", "Earlier blocks";
    NEWEST = "Mais novos", "Newest";
    MORE_OF_BLOCK = "Este bloco tem mais registros.", "This block has more Records.";
    // Keys and disputes.
    NEW_MERCHANT = "Novo lojista", "New merchant";
    OPEN_MERCHANT = "Abrir", "Open";
    TAX_ID = "CPF ou CNPJ", "CPF or CNPJ";
    NEW_KEY = "Nova chave", "New key";
    WEBHOOK_SECRET = "Segredo dos webhooks", "Webhook secret";
    SHOWN_ONCE = "Copie agora: a chave e o segredo não aparecem de novo.", "Copy them now: the key and the secret are not shown again.";
    LAST_USED = "Último uso", "Last used";
    LAST_USED_WHAT = "O último uso é o minuto, e só desde que o serviço começou.", "The last use is by the minute, and only since the service started.";
    REVOKED = "revogada", "revoked";
    REVOKE = "Revogar", "Revoke";
    SURE = "tenho certeza", "I am sure";
    CLOSE_MERCHANT = "Encerrar a conta", "End the account";
    REOPEN = "Reabrir", "Reopen";
    REOPEN_WHAT = "Um lojista encerrado não cobra. Reaberto, volta a ser o que era.", "A closed merchant charges nothing. Once reopened it is what it was before.";
    FORMER_ACCOUNT = "Conta anterior", "Account before";
    CLOSE_MERCHANT_WHAT = "Não cria mais cobranças; assinaturas e códigos PIX abertos são cancelados, e o que está aberto segue. Sem nada aberto, a conta fica encerrada: peça de novo quando a lista estiver vazia.", "It creates no more charges; subscriptions and open PIX codes are cancelled, and what is open goes on. With nothing open, the account is closed: ask again once the list is empty.";
    OPEN_OF_MERCHANT = "Em aberto", "Open items";
    PAY_RECIPIENT = "Sacar para o recebedor", "Withdraw for the recipient";
    PAY_RECIPIENT_WHAT = "Pede o saque de tudo o que está disponível, também se o lojista não divide mais ou está em encerramento. Outro operador precisa aprovar.", "Asks for a withdrawal of all that is available, also where the merchant splits no more or is closing. Another operator must approve.";
    OPEN_DISPUTE = "Abrir contestação", "Open a dispute";
    REVERSE_DISPUTE = "Reverter contestação", "Reverse the dispute";
    REVERSE_WHAT = "A contestação foi aceita e depois ganha: o lojista recebe de volta o que ela levou. Outro operador precisa aprovar.", "The dispute was accepted and won later: the merchant gets back what it took. Another operator must approve.";
    ITEM_CHANGED = "Mudou desde que você o viu, e nada foi decidido. Abaixo está como é agora.", "It changed after you saw it, and nothing was decided. Below is how it is now.";
    APPROVABLE_UNTIL = "Pode ser aprovada até", "Can be approved until";
    APPROVED_AS_FIRST = "aprovar (primeiro de dois)", "approve (first of two)";
    REFUND_WAITS = "Há contestação aberta desta cobrança: o reembolso espera por ela.", "A dispute of this charge is open: the refund waits for it.";
    REFUND_NEED_NOT_WAIT = "Há contestação aberta desta cobrança; resta valor que baste para o reembolso.", "A dispute of this charge is open; enough is left for the refund.";
    EXCEEDS_CHARGE = "Passa do que restava da cobrança: conteste-a.", "It passes what was left of the charge: contest it.";
    SHOW_ENTRIES = "Ver os lançamentos", "Show the entries";
    KIND_CHARGEBACK = "Chargeback", "Chargeback";
    KIND_MED = "MED", "MED";
    AMOUNT_WRONG = "Escreva o valor em reais, com duas casas decimais ou nenhuma, como 1.234,56 ou 12.", "Write the amount in reais, with two decimals or none, such as 1,234.56 or 12.";
    CHANGE = "Alterar", "Change";
    CHANGED = "Alterado.", "Changed.";
    OPTIONS = "Opções", "Options";
    REFUND_COMMISSION = "devolver a comissão com reembolsos", "return the commission with refunds";
    LIMIT_EMPTY = "Limite vazio: o do servidor.", "An empty limit: that of the server.";
    SET_ADDRESS = "Gravar o endereço", "Set the address";
    ADDRESS_SET = "O endereço vale para os eventos a partir de agora.", "The address holds for the events from now on.";
    ROTATE = "Trocar o segredo", "Rotate the secret";
    ROTATE_WHAT = "O segredo de antes ainda assina ao lado do novo por 24 horas.", "The secret before signs beside the new one for 24 hours.";
    // House ledger.
    ASK_ENTRY = "Pedir um lançamento", "Ask for an entry";
    BOOK_BATCHES = "Lançar lotes do adquirente", "Book batches of the acquirer";
    BATCHES_WHAT = "Para um adquirente que só entrega arquivos. Cada lote é lançado uma vez, quando um segundo operador envia as mesmas linhas. Arquivos de mais de 64 KiB vão pela API.", "For an acquirer that gives files only. Each batch is booked once, when a second operator sends the same lines. Files of more than 64 KiB go through the API.";
    BATCH_LINES = "Conteúdo do arquivo CSV", "Content of the CSV file";
    ONLY_PREVIEW = "Só mostrar o que seria lançado", "Only show what would be booked";
    BATCHES_ASKED = "Pedido. Outro operador deve enviar as mesmas linhas.", "Asked for. Another operator has to send the same lines.";
    BATCHES_BOOKED = "Os lotes estão lançados.", "The batches are booked.";
    BATCHES = "Lotes", "Batches";
    IN_SUSPENSE = "Sem cobrança (valores a identificar)", "Without a charge (suspense)";
    ASK_WRITE_OFF = "Pedir a baixa de uma dívida", "Ask for the write-off of a debt";
    WRITE_OFF = "O déficit de um lojista é perda da plataforma; a dívida de um recebedor é perda do seu lojista.", "The Deficit of a merchant is the platform's loss; the debt of a recipient is its merchant's loss.";
    ASK_GOODWILL = "Pedir um crédito da casa", "Ask for a credit of the house";
    GOODWILL = "A casa dá dinheiro a um lojista ou a um recebedor, por sua perda. O lojista lê o motivo, e o que quem recebe deve é pago primeiro.", "The house gives money to a merchant or a recipient, at its own loss. The merchant reads the reason, and what the receiver owes is paid first.";
    CREDITED = "Quem recebe", "Receiver";
    DEBTOR = "Devedor", "Debtor";
    ASK_RETURN = "Pedir a devolução de um saque", "Ask for the return of a withdrawal";
    RETURN = "O banco devolveu um saque pago, e só o extrato mostra. O valor volta ao disponível do recebedor, e o lojista lê o motivo.", "The bank returned a paid withdrawal, and only its statement shows it. The money is available to the recipient again, and the merchant reads the reason.";
    AS_IT_LEFT = "a conta de onde saiu", "the account that it left";
    CAME_TO = "Conta em que entrou", "Account that it came to";
    NO_DEBTOR = "Só um lojista ou um recebedor tem esta conta.", "Only a merchant or a recipient has this account.";
    ENTRY_ASKED = "O lançamento espera outro operador.", "The entry waits for another operator.";
    ENTRY_ASKED_ALONE = "O lançamento espera outro operador, mas move menos que a diferença: ela continua sem explicação.", "The entry waits for another operator, and moves less than the difference: that is still not explained.";
    TAKES_TWO = "O valor passa do limite: depois desta aprovação, outro operador precisa aprovar também. Nada se move antes.", "The amount passes the limit: after this approval another operator has to approve too. Nothing moves before.";
    SECOND_OPERATOR = "Outro operador aprova o lançamento na fila.", "Another operator approves the entry in the queue.";
    // Months.
    MONTH = "Mês", "Month";
    MONTHS = "Meses", "Months";
    MONTHS_WHAT = "Os meses que acabaram. Fechar um mês fecha também todos os anteriores.", "The months that are over. Closing a month closes all months before it too.";
    THIS_MONTH = "Este mês até agora", "This month so far";
    CLOSED_BY_RECORD = "Fechado pelo", "Closed by";
    MONTH_CUT = "Último registro do mês", "Last Record of the month";
    CLOSE_ASKED_BY = "Fechamento pedido por", "Closing asked for by";
    CLOSED_BY = "Fechado por", "Closed by";
    CLOSED_WITH = "Fechado junto com", "Closed together with";
    MONTH_HEAD = "Hash do diário no fim do mês", "Hash of the journal at the month's end";
    MONTH_TOTALS = "Resumo (SHA-256) das somas de todas as contas", "Digest (SHA-256) of the sums of all accounts";
    OPEN_ITEMS = "O que está em aberto", "What is open";
    OPEN_NOTHING = "Nada está em aberto.", "Nothing is open.";
    ASK_CLOSE = "Pedir o fechamento", "Ask for the closing";
    CLOSE_MONTH = "Fechar o mês", "Close the month";
    CLOSE_WHAT = "O fechamento fixa as somas de todas as contas e o hash do diário. Depois dele, nenhum lançamento da casa vale neste mês.", "The closing fixes the sums of all accounts and the hash of the journal. After it, no entry of the house takes effect in this month.";
    SECOND_CLOSES = "Um operador pede o fechamento e outro fecha o mês, nesta página.", "One operator asks for the closing, and another closes the month, on this page.";
    MONTH_GOES_ON = "O mês ainda não acabou.", "The month is not over yet.";
    CLOSE_ASKED = "O fechamento espera outro operador.", "The closing waits for another operator.";
    MONTH_CLOSED = "O mês está fechado.", "The month is closed.";
    // Webhooks.
    ENDPOINTS_BEHIND = "endereços com eventos à espera ou desistidos", "addresses with events that wait or were given up";
    EVENT = "Evento", "Event";
    WAITING = "À espera", "Waiting";
    GIVEN_UP = "Desistidos", "Given up";
    LAST_ANSWER = "Última resposta", "Last answer";
    EVENTS_OF = "eventos", "events";
    DELIVERY = "Entrega", "Delivery";
    DELIVERED = "entregue", "delivered";
    TRIES = "tentativas", "tries";
    SEND_AGAIN = "Enviar de novo", "Send again";
    SENT_AGAIN = "O evento será enviado de novo.", "The event will be sent again.";
    SEND_ALL_AGAIN = "Enviar agora todos os que esperam e os desistidos", "Send all that wait or were given up now";
    ALL_SENT_AGAIN = "Os eventos que esperam e os desistidos são enviados agora.", "What waits and what was given up is sent now.";
    LAST_TRIES = "Últimas tentativas", "Last tries";
    TRIES_OF_EVENT = "Tentativas deste evento", "Tries of this event";
    TRIES_STORED = "Guardadas: de cada endereço, as últimas 1.000 que falharam e as últimas 50 aceitas.", "Stored: of each address the last 1,000 that failed and the last 50 that were accepted.";
    PAYLOAD = "Corpo enviado", "Body that is sent";
    PAYLOAD_MASKED = "Chaves PIX, e-mails e telefones aparecem aqui com máscara.", "PIX keys, email addresses and telephone numbers are masked here.";
    RESPONSE = "Resposta (primeiro KiB)", "Answer (first KiB)";
    ACCEPTED = "aceito", "accepted";
    SEND_TEST = "Enviar evento de teste", "Send a test event";
    // Health.
    READY = "pronto", "ready";
    NOT_READY = "não está pronto", "not ready";
    VERSION = "Versão", "Version";
    HEAD = "Último registro", "Last Record";
    LAST_BACKUP = "Último backup", "Last backup";
    NEVER = "nunca", "never";
    DATA_SIZE = "Tamanho dos dados", "Size of the data";
    FREE_SPACE = "Espaço livre", "Free space";
    DUE_LAG = "Atraso do que venceu", "Lag of what is due";
    OLDEST_UNKNOWN = "Chamada mais antiga sem resposta", "Oldest call without an answer";
    COMMIT_TIME = "Gravação de um bloco: metade até, 99 % até", "Commit of a block: half within, 99 % within";
    GATE_TIME = "Comando até a resposta durável: metade até, 99 % até", "Command to its durable reply: half within, 99 % within";
    PERMITS_FREE = "Comandos que ainda cabem", "Commands that still fit";
    MEMORY = "Memória do processo", "Memory of the process";
    LAST_BACKUP_THROUGH = "Último backup, até o", "Last backup, through";
    SHED = "Requisições recusadas por carga", "Requests shed";
    // Exports and sandbox.
    EXPORT_JOBS = "Arquivos prontos e em preparo", "Files that are ready or being made";
    EXPORT_ASKED = "O arquivo está em preparo.", "The file is being made.";
    CHART_STORED = "O mapa foi guardado.", "The map was stored.";
    STORE_MAP = "Guardar este mapa", "Store this map";
    OWN_CHART = "No plano de contas da empresa", "In the company's chart of accounts";
    OWN_CHART_WHAT = "O mapa diz o código de cada conta no programa do contador, e as colunas do arquivo. Comece pelo modelo abaixo ou envie o seu.", "The map has the code of each account in the bookkeeper's program, and the columns of the file. Begin with the sample below or send your own.";
    MAP_FILE = "Arquivo do mapa (TOML)", "File of the map (TOML)";
    MAP_TEXT = "Mapa, quando não há arquivo", "Map, where there is no file";
    LEVEL = "Lançamentos", "Entries";
    BY_ENTRY = "um por registro", "one for each Record";
    BY_DAY = "um por dia", "one for each day";
    ASK_EXPORT = "Preparar o arquivo", "Make the file";
    LEAST = "Valor de (R$)", "Amount from (R$)";
    MOST = "Valor até (R$)", "Amount to (R$)";
    NONE_READ = "Nada nos 2.000 registros lidos; o que é mais antigo vem antes.", "Nothing in the 2,000 Records that were read; what is older comes before.";
    LISTS = "Listas", "Lists";
    FORMAT = "Formato", "Format";
    DOWNLOAD = "Baixar", "Download";
    CLOCK_MOVED = "O relógio andou; o que venceu foi lançado.", "The clock has moved; what fell due was booked.";
    MOVE_CLOCK = "Adiantar o relógio", "Move the clock forward";
    MOVE = "Adiantar", "Move";
    ONE_HOUR = "1 hora", "1 hour";
    ONE_DAY = "1 dia", "1 day";
    ONE_WEEK = "7 dias", "7 days";
    THIRTY_DAYS = "30 dias", "30 days";
    ONE_YEAR = "365 dias", "365 days";
    PAY_PIX = "Pagar um PIX", "Pay a PIX charge";
    PAY = "Pagar", "Pay";
    PIX_PAID = "O PIX foi pago.", "The PIX charge is paid.";
    TEST_CARDS = "Cartões de teste", "Test cards";
    CARD_APPROVED = "aprovado", "approved";
    CARD_REFUSED = "recusado", "refused";
    CARD_WITHOUT_FUNDS = "sem fundos", "without funds";
    CARD_SILENT = "o adquirente não responde", "the acquirer does not answer";
    // Problems.
    PROBLEM = "Não foi possível", "That was not possible";
    FOUND_NOTHING = "Nada foi encontrado que tenha tudo isto. Nomes são achados pelo começo de suas palavras (3 letras ou mais), e valores e datas por inteiro.", "Nothing was found that has all of this. Names are found by the beginnings of their words (3 letters or more), amounts and days whole.";
    SORTED_NEWEST = "Há mais itens: só os 2.000 mais novos deste filtro estão em ordem. Um período menor mostra os outros.", "There are more items: only the newest 2,000 of this filter are in order. A shorter span shows the others.";
    NOT_SURE = "A caixa que diz que há certeza não está marcada.", "The box that says so is not ticked.";
    FORM_OF_NO_SESSION = "O formulário não tem o token desta sessão.", "The form has no token of this session.";
    FORM_OF_ANOTHER_SITE = "O formulário não veio de uma página deste console (Origin).", "The form was not sent by a page of this console (Origin).";
    BACK = "Voltar à visão geral", "Back to the overview";
}

/// What a form did, in words.
pub(crate) fn done(done: &FormOutcome) -> Word {
    match done {
        FormOutcome::Decided => DECIDED,
        FormOutcome::ApprovedFirst => APPROVED_BY_ONE,
        FormOutcome::MerchantChanged => CHANGED,
        FormOutcome::EntryAsked => ENTRY_ASKED,
        FormOutcome::EntryAskedAlone => ENTRY_ASKED_ALONE,
        FormOutcome::CloseAsked => CLOSE_ASKED,
        FormOutcome::MonthClosed => MONTH_CLOSED,
        FormOutcome::AddressSet => ADDRESS_SET,
        FormOutcome::SentAgain => SENT_AGAIN,
        FormOutcome::AllSentAgain => ALL_SENT_AGAIN,
        FormOutcome::ClockMoved => CLOCK_MOVED,
        FormOutcome::ExportAsked => EXPORT_ASKED,
        FormOutcome::ChartStored => CHART_STORED,
        FormOutcome::FileCompared => FILE_COMPARED,
        FormOutcome::DifferenceExplained => DIFFERENCE_EXPLAINED,
        FormOutcome::ResultDismissed => RESULT_DISMISSED,
        FormOutcome::PixPaid(_) => PIX_PAID,
        FormOutcome::RefundStarted => REFUND_STARTED,
        FormOutcome::NoteWritten => NOTE_WRITTEN,
        FormOutcome::CardDeleted => CARD_DELETED,
        FormOutcome::ErasureAsked => ANOTHER_ERASES,
        FormOutcome::ErasureWithdrawn => ERASURE_WITHDRAWN,
        FormOutcome::DataErased => DATA_ERASED,
    }
}

/// A fact of the ledger in words.
pub(crate) fn fact(event: &Event) -> Word {
    let [pt, en] = event.in_words();
    word(pt, en)
}

#[cfg(test)]
mod tests {
    use super::*;
    use web::language::Language;

    #[test]
    fn every_word_is_in_both_languages() {
        assert!(ALL.len() > 80, "{}", ALL.len());
        for (name, word) in ALL {
            let is_said = |language: Language| !word.text(language).trim().is_empty();
            assert!(is_said(Language::Portuguese) && is_said(Language::English), "{name}");
        }
    }
}
